#include "registry/thoroughness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "base/text.h"
#include "tune/tune.h"

namespace tessera::registry {
namespace {

constexpr std::array efforts{"quick", "default", "max"};

/// -1: no effort of ours.
int rank(std::string_view effort) {
  const auto at = std::find(efforts.begin(), efforts.end(), effort);
  return at == efforts.end() ? -1 : static_cast<int>(at - efforts.begin());
}

/// What an effort allows one pattern; infinite where it has no limit.
double seconds_of(const std::string& effort) {
  const auto budget = tune::budget_for(effort);
  return budget && budget->seconds > 0 ? budget->seconds : INFINITY;
}

double seconds_asked(const Asked& asked) {
  const double all = seconds_of(asked.effort);
  return asked.seconds > 0 ? std::min(asked.seconds, all) : all;
}

/// The effort's own budget is not more than a search within it may spend.
bool is_complete(const Ended& s, Stop stop) {
  // The last part of a budget of seconds is for the finals.
  constexpr double spent = 0.8;
  const bool limited = s.asked.seconds > 0;
  switch (stop) {
    case Stop::exhausted:
      return !(limited && s.untried);
    case Stop::no_gain:
      return true;
    case Stop::budget:
      return s.because.find("builds") != std::string::npos ||
             s.because.find("measurements") != std::string::npos ||
             s.seconds >= spent * seconds_of(s.asked.effort);
    case Stop::interrupted:
    case Stop::unknown:
      return false;
  }
  return false;
}

bool same_kind(const Pass& a, const Pass& b) {
  return a.effort == b.effort && a.left_out_from == b.left_out_from;
}

double number(const Json& j, const char* name) {
  const auto it = j.find(name);
  return it != j.end() && it->is_number() && std::isfinite(it->get<double>()) ? it->get<double>()
                                                                              : 0;
}

std::string text(const Json& j, const char* name) {
  const auto it = j.find(name);
  return it != j.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

std::string_view name_of(Stop stop) {
  constexpr std::array names{"space exhausted", "no gain", "budget", "interrupted", "unknown"};
  return names.at(static_cast<std::size_t>(stop));
}

Stop stop_of(std::string_view because) {
  for (const Stop s : {Stop::exhausted, Stop::no_gain, Stop::budget, Stop::interrupted}) {
    if (because.starts_with(name_of(s))) return s;
  }
  return Stop::unknown;
}

Thoroughness thoroughness_of(const Ended& s) {
  const Stop stop = stop_of(s.because);
  Pass p{.effort = s.asked.effort,
         .left_out_from = s.left_out_from,
         .seconds_spent = s.seconds,
         .seconds_allowed = s.seconds,
         .stop = stop,
         .because = s.because,
         .complete = is_complete(s, stop)};
  const double allowed = seconds_asked(s.asked);
  if (stop != Stop::interrupted && std::isfinite(allowed))
    p.seconds_allowed = std::max(p.seconds_allowed, allowed);
  return {.passes = {p}, .candidates = s.candidates, .measurements = s.measurements};
}

Thoroughness together(const Thoroughness& earlier, const Thoroughness& later, bool added) {
  Thoroughness out = earlier;
  out.candidates = std::max(earlier.candidates, later.candidates);
  out.measurements = added ? earlier.measurements + later.measurements
                           : std::max(earlier.measurements, later.measurements);
  for (const Pass& p : later.passes) {
    const auto held = std::find_if(out.passes.begin(), out.passes.end(),
                                   [&](const Pass& q) { return same_kind(p, q); });
    if (held == out.passes.end()) {
      out.passes.push_back(p);
      continue;
    }
    Pass both = p;
    both.seconds_spent = added ? held->seconds_spent + p.seconds_spent
                               : std::max(held->seconds_spent, p.seconds_spent);
    both.seconds_allowed = std::max({held->seconds_allowed, p.seconds_allowed, both.seconds_spent});
    if (held->complete && !p.complete) {
      both.stop = held->stop;
      both.because = held->because;
      both.complete = true;
    }
    *held = both;
  }
  std::sort(out.passes.begin(), out.passes.end(), [](const Pass& a, const Pass& b) {
    return std::pair(rank(a.effort), a.left_out_from) < std::pair(rank(b.effort), b.left_out_from);
  });
  return out;
}

bool satisfies(const Thoroughness& had, const Asked& asked) {
  constexpr double nearly = 1.01;  // the share of a budget is a quotient
  const double wanted = seconds_asked(asked);
  return std::any_of(had.passes.begin(), had.passes.end(), [&](const Pass& p) {
    if (rank(p.effort) < 0 || rank(p.effort) < rank(asked.effort)) return false;
    if (p.left_out_from > 0 && asked.scratch && *asked.scratch >= p.left_out_from) return false;
    return p.complete || p.seconds_allowed * nearly >= wanted;
  });
}

std::string to_text(const Thoroughness& t) {
  if (t.passes.empty()) return "unknown";
  std::vector<std::string> parts;
  for (const Pass& p : t.passes) {
    const std::string how = p.complete
                                ? fmt::format("complete at {}", p.effort)
                                : fmt::format("cut at {:.3g} s of {}", p.seconds_allowed, p.effort);
    const std::string without =
        p.left_out_from > 0
            ? fmt::format(", without workspaces of {:.1f} MB and more", p.left_out_from * 1e-6)
            : "";
    parts.push_back(fmt::format("{} ({}, {:.3g} s{})", how,
                                p.because.empty() ? name_of(p.stop) : p.because, p.seconds_spent,
                                without));
  }
  return fmt::format("{}; {} candidates, {} measurements", join(parts, ", "), t.candidates,
                     t.measurements);
}

Json to_json(const Thoroughness& t) {
  Json passes = Json::array();
  for (const Pass& p : t.passes) {
    passes.push_back({{"effort", p.effort},
                      {"left_out_from", p.left_out_from},
                      {"seconds_spent", p.seconds_spent},
                      {"seconds_allowed", p.seconds_allowed},
                      {"stop", name_of(p.stop)},
                      {"because", p.because},
                      {"complete", p.complete}});
  }
  return {{"passes", passes}, {"candidates", t.candidates}, {"measurements", t.measurements}};
}

Thoroughness thoroughness_from_json(const Json& j) {
  Thoroughness out;
  if (!j.is_object()) return out;
  constexpr double most = 1e9;
  const auto count = [&](const char* name) {
    return static_cast<int>(std::clamp(number(j, name), 0.0, most));
  };
  out.candidates = count("candidates");
  out.measurements = count("measurements");
  if (!j.contains("passes") || !j.at("passes").is_array()) return out;
  for (const Json& p : j.at("passes")) {
    if (!p.is_object() || rank(text(p, "effort")) < 0) continue;
    Pass pass{.effort = text(p, "effort"),
              .left_out_from = std::max(0.0, number(p, "left_out_from")),
              .seconds_spent = std::clamp(number(p, "seconds_spent"), 0.0, most),
              .seconds_allowed = std::clamp(number(p, "seconds_allowed"), 0.0, most),
              .stop = stop_of(text(p, "stop")),
              .because = text(p, "because")};
    pass.complete = p.contains("complete") && p.at("complete") == true;
    const bool again = std::any_of(out.passes.begin(), out.passes.end(),
                                   [&](const Pass& q) { return same_kind(q, pass); });
    if (!again) out.passes.push_back(pass);
  }
  return out;
}

}  // namespace tessera::registry
