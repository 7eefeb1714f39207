#include "pipeline/why_not.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "pipeline/by_hand_measure.h"

namespace tessera::pipeline {
namespace {

using tune::Outcome;

struct Failure {
  std::string label;
  Outcome outcome = Outcome::wrong_result;
  std::string reason;
};

/// What is known of the kernels that tessera writes for a work, none of which is a winner.
struct Tried {
  std::vector<Failure> failed;  // one a candidate
  int unverified = 0;           // measured, and not verified in full
};

Tried tried_now(const evaluate::Tuned& tuned) {
  std::map<int, const tune::Trial*> last;  // by candidate; a failure says more than a time
  for (const tune::Trial& t : tuned.trials) {
    const auto& of = tuned.candidates.at(static_cast<std::size_t>(t.point.candidate));
    if (t.outcome == Outcome::skipped || of.kind != kernel::Kind::synthesized) continue;
    const tune::Trial*& known = last[t.point.candidate];
    if (known == nullptr || t.outcome != Outcome::measured) known = &t;
  }
  Tried out;
  for (const auto& [candidate, t] : last) {
    if (t->outcome == Outcome::measured) {
      ++out.unverified;
      continue;
    }
    const auto& of = tuned.candidates.at(static_cast<std::size_t>(candidate));
    out.failed.push_back({of.label, t->outcome, t->reason});
  }
  return out;
}

/// Of the search that the registry's entry is of.
Tried tried_before(const registry::Entry& entry) {
  std::map<std::string, Failure> last;  // by label
  for (const Json& row : entry.negative) {
    const auto outcome = tune::outcome_of(row.value("outcome", ""));
    if (!outcome || row.value("kind", "") != kernel::name_of(kernel::Kind::synthesized)) continue;
    const std::string label = row.value("label", "");
    last[label] = {label, *outcome, row.value("reason", "")};
  }
  Tried out;
  for (auto& [label, failure] : last) out.failed.push_back(std::move(failure));
  return out;
}

/// "3 gave wrong results".
std::string counted(std::size_t n, Outcome outcome) {
  switch (outcome) {
    case Outcome::build_failed:
      return fmt::format("{} did not build", n);
    case Outcome::crashed:
      return fmt::format("{} crashed", n);
    case Outcome::timed_out:
      return fmt::format("{} took too long", n);
    case Outcome::unsupported:
      return fmt::format("{} cannot run here", n);
    default:
      return fmt::format("{} gave {}", n, n == 1 ? "a wrong result" : "wrong results");
  }
}

std::string shortened(const std::string& reason) {
  constexpr std::size_t most = 200;
  const std::string line = reason.substr(0, reason.find('\n'));
  return line.size() <= most ? line : line.substr(0, line.rfind(' ', most)) + " ...";
}

/// Reasons that differ in their figures alone are one.
std::string without_figures(const std::string& reason) {
  std::string out;
  for (const char c : shortened(reason)) {
    if (c >= '0' && c <= '9') continue;
    out += c;
  }
  return out;
}

/// "8 gave wrong results (7 as tile_row 4x32: ...)".
std::string at_gate(Outcome outcome, const std::vector<const Failure*>& failed) {
  std::map<std::string, std::vector<const Failure*>> alike;
  for (const Failure* f : failed) alike[without_figures(f->reason)].push_back(f);
  const auto& commonest =
      std::max_element(alike.begin(), alike.end(), [](const auto& a, const auto& b) {
        return a.second.size() < b.second.size();
      })->second;
  const Failure& one = *commonest.front();
  const std::string as =
      commonest.size() == failed.size() ? "" : fmt::format("{} as ", commonest.size());
  const std::string reason = one.reason.empty() ? "no reason given" : shortened(one.reason);
  return fmt::format("{} ({}{}: {})", counted(failed.size(), outcome), as, one.label, reason);
}

std::string failures_text(const std::vector<Failure>& failed) {
  std::map<Outcome, std::vector<const Failure*>> gates;
  for (const Failure& f : failed) gates[f.outcome].push_back(&f);
  std::vector<std::pair<Outcome, std::vector<const Failure*>>> order(gates.begin(), gates.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::vector<std::string> parts;
  for (const auto& [outcome, of_gate] : order) parts.push_back(at_gate(outcome, of_gate));
  return join(parts, ", ");
}

/// Why the realizers offer none.
std::string none_offered(const Session& s, const evaluate::Tuned& tuned) {
  std::vector<std::string> why = rules::by_reason(evaluate::refused_of_ours(tuned.unsupported));
  for (const auto& [reason, count] : tuned.pruned)
    why.push_back(fmt::format("{} left out: {}", count, reason));
  return fmt::format("tessera writes no kernel for it on {}: {}", s.found.arch->name,
                     why.empty() ? "no realizer takes its rule" : join(why, "; "));
}

/// No kernel of ours was tried in this search.
std::string none_tried(const Session& s, const evaluate::Tuned& tuned) {
  const auto ours =
      std::count_if(tuned.candidates.begin(), tuned.candidates.end(),
                    [](const evaluate::Named& c) { return c.kind == kernel::Kind::synthesized; });
  if (ours == 0) return none_offered(s, tuned);
  // What is tried last is what promises least: a search that was not cut ends where the rest cannot
  // win.
  const std::string why = tuned.cut            ? tuned.stopped_because
                          : tuned.hopeless > 0 ? "by the model they cannot win"
                                               : "at the roofline they would save no more than "
                                                 "other kernels do";
  return fmt::format("tessera's own kernels for it, {} of them, were not tried: {}", ours, why);
}

}  // namespace

std::string fate_of_ours(const Session& s, const Work& w) {
  if (s.options.only_kind == kernel::name_of(kernel::Kind::library)) return "";
  const bool ours =
      w.tuned && std::any_of(w.tuned->winners.begin(), w.tuned->winners.end(),
                             [](const kernel::Winner& winner) {
                               return winner.candidate.kind == kernel::Kind::synthesized;
                             });
  if (ours) return "";
  Tried tried;
  if (w.tuned && !w.tuned->trials.empty())
    tried = tried_now(*w.tuned);
  else if (w.own)
    tried = tried_before(*w.own);
  const std::string unverified =
      tried.unverified == 0
          ? ""
          : fmt::format("{} {} measured and not verified in full before the search ended",
                        tried.unverified, tried.unverified == 1 ? "was" : "were");
  if (!tried.failed.empty()) {
    return fmt::format("no kernel that tessera writes passed its gates: {}{}{}",
                       failures_text(tried.failed), unverified.empty() ? "" : ", ", unverified);
  }
  if (!unverified.empty()) return "of the kernels that tessera writes " + unverified;
  // Otherwise only what was known before was tried.
  const bool searched = w.tuned && !w.tuned->candidates.empty() && !w.rechecked;
  return searched ? none_tried(s, *w.tuned) : "";
}

std::string what_decided(const Session& s, const Chosen& chosen, int index) {
  for (const auto& [option, reason] : chosen.choice.left_out) {
    if (chosen.origins[static_cast<std::size_t>(option)].pattern == index) return reason;
  }
  const Work* w = s.work_of(index);
  if (w == nullptr) return "it was not evaluated";
  if (!w->skipped.empty()) return w->skipped;
  if (placeable(s, *w) != nullptr)
    return chosen.options.empty() ? "nothing is placed: the run was a search alone" : "not chosen";
  if (std::string ours = fate_of_ours(s, *w); !ours.empty()) return ours;
  return s.options.only_kind.empty()
             ? "no candidate passed its gates"
             : fmt::format("no {} kernel passed its gates", s.options.only_kind);
}

std::string why_not(const Session& s, const Chosen& chosen, int index) {
  std::string first = what_decided(s, chosen, index);
  const Work* w = s.work_of(index);
  const std::string ours = w == nullptr ? "" : fate_of_ours(s, *w);
  if (ours.empty() || ours == first) return first;
  const kernel::Winner* best = placeable(s, *w);
  const std::string whose = best == nullptr ? ""
                                            : fmt::format("its best kernel is a library's, {}; ",
                                                          best->candidate.label());
  return fmt::format("{}; {}{}", first, whose, ours);
}

namespace {

/// "2.5 ms a call, 2.4 ms back to back".
std::string figures(double ms, double sustained_ms) {
  return fmt::format("{:.4g} ms a call{}", ms,
                     sustained_ms > 0 ? fmt::format(", {:.4g} ms back to back", sustained_ms) : "");
}

/// What became of a stored winner in this run's measurements.
std::string fate_of(const evaluate::Tuned& tuned, const kernel::Winner& stored) {
  for (const kernel::Winner& w : tuned.winners)
    if (w.is_of(stored.candidate)) return figures(w.evidence.ms, w.evidence.sustained_ms);
  const std::string label = stored.candidate.label();
  const tune::Trial* last = nullptr;
  for (const tune::Trial& t : tuned.trials)
    if (tuned.candidates.at(static_cast<std::size_t>(t.point.candidate)).label == label) last = &t;
  if (last == nullptr || last->outcome == Outcome::skipped) return "not timed in this run";
  if (last->outcome == Outcome::measured)
    return figures(last->ms, last->detail.value("sustained_ms", 0.0));
  return fmt::format("{}: {}", tune::name_of(last->outcome), shortened(last->reason));
}

}  // namespace

std::vector<PassedOver> passed_over(const Work& w) {
  std::vector<PassedOver> out;
  if (!w.own || !w.tuned || w.reused) return out;
  const std::vector<kernel::Winner>& now = w.tuned->winners;
  for (std::size_t i = 0; i < w.own->winners.size(); ++i) {
    const kernel::Winner& stored = w.own->winners[i];
    if (i > 0 && stored.candidate.realizer != by_hand_realizer) continue;
    if (!now.empty() && now.front().is_of(stored.candidate)) continue;
    std::string reason = fate_of(*w.tuned, stored);
    if (!now.empty()) {
      const kernel::Evidence& e = now.front().evidence;
      reason +=
          fmt::format("; {}: {}", now.front().candidate.label(), figures(e.ms, e.sustained_ms));
      if (w.refined) reason += ", and in the module's own run it is the fastest";
    }
    out.push_back({stored.candidate.label(), std::move(reason)});
  }
  return out;
}

}  // namespace tessera::pipeline
