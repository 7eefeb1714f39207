// Winners on the module's own clock.
//
// A kernel by itself runs on cold caches, in the module it shares L2 and power with what runs
// before and after. Between kernels a few percent apart the order may change, so the module is run
// with each in its place, as finalists are: from cold caches, and back to back.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "pipeline/gains.h"
#include "pipeline/recall.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

/// Runner-ups further behind than this are not tried.
constexpr double nearly = 1.06;
constexpr std::size_t most_tried = 3;
/// Patterns below this share of the kernels' time change nothing that could be measured.
constexpr double least_share = 0.02;
/// What a time in the module must win by.
constexpr double least_gain = 0.001;

/// The winner that stands first of those allowed, then those nearly as fast.
std::vector<std::size_t> contenders(const Session& s, const Work& w) {
  std::vector<std::size_t> out;
  const auto& winners = w.tuned->winners;
  for (std::size_t i = 0; i < winners.size() && out.size() <= most_tried; ++i) {
    if (!may_be_placed(s, winners[i])) continue;
    if (out.empty() || winners[i].evidence.ms <= nearly * winners[out.front()].evidence.ms)
      out.push_back(i);
  }
  return out;
}

/// Makes winner `which` the first.
void prefer(Work& w, std::size_t which) {
  auto& winners = w.tuned->winners;
  const auto at = winners.begin() + static_cast<std::ptrdiff_t>(which);
  std::rotate(winners.begin(), at, at + 1);
}

/// Undoes it.
void defer(Work& w, std::size_t which) {
  auto& winners = w.tuned->winners;
  const auto at = winners.begin() + static_cast<std::ptrdiff_t>(which);
  std::rotate(winners.begin(), winners.begin() + 1, at + 1);
}

struct Time {
  double ms = 0;  // 0: it failed
  double ci95 = 0;
  double sustained_ms = 0;  // 0: not measured
  [[nodiscard]] double judged() const {
    return sustained_ms > 0 ? std::sqrt(ms * sustained_ms) : ms;
  }
};

/// The module's time under each contender, in order.
Result<std::vector<Time>> compare(Session& s, bridge::Peer& tracer, const Chosen& chosen, Work& w,
                                  const std::vector<std::size_t>& contenders) {
  Json plans = Json::array();
  Json timed = Json::array();
  for (const std::size_t which : contenders) {
    prefer(w, which);
    auto plan = plan_of(s, chosen);
    defer(w, which);
    if (!plan) return error(std::move(plan).error());
    plans.push_back(to_json(*plan));
    timed.push_back(timed_part(plans.back()));
  }
  constexpr double seconds_each = 0.4;
  const double seconds = seconds_each * static_cast<double>(plans.size());
  TESSERA_TRY(
      reply,
      ask_or_recall(s, tracer,
                    {.method = "compare_plans",
                     .request = {{"plans", plans}, {"leftover", "eager"}, {"seconds", seconds}},
                     .about = {{"plans", timed}},
                     .limit = std::chrono::seconds(900)}));
  std::vector<Time> times;
  for (const Json& row : reply.at("times")) {
    const bool ran = row.value("reason", "").empty();
    times.push_back(
        ran ? Time{row.value("ms", 0.0), row.value("ci95", 0.0), row.value("sustained_ms", 0.0)}
            : Time{});
  }
  return times;
}

/// What was exchanged; nothing where the winner stays.
Result<std::optional<Refinement>> refine_one(Session& s, bridge::Peer& tracer, const Chosen& chosen,
                                             Work& w) {
  const std::vector<std::size_t> which = contenders(s, w);
  if (which.size() < 2) return std::optional<Refinement>();
  TESSERA_TRY(times, compare(s, tracer, chosen, w, which));
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (times[i].ms > 0 && times[i].judged() < times[best].judged()) best = i;
  }
  const std::string id = s.pattern(w.patterns.front()).id;
  const auto label = [&](std::size_t i) {
    const auto& winner = w.tuned->winners[which[i]];
    const auto& launches = winner.candidate.launches;
    const auto at = static_cast<std::size_t>(winner.launch);
    return winner.candidate.label() + (at < launches.size() ? " " + launches[at].knobs.dump() : "");
  };
  const double noise = times[best].ci95 + times[0].ci95;
  const double gain = times[0].judged() - times[best].judged();
  if (best == 0 || gain < std::max(least_gain * times[0].judged(), noise)) {
    s.say("refine",
          fmt::format("{}: {} stays, {} tried in the module", id, label(0), which.size() - 1));
    return std::optional<Refinement>();
  }
  const std::string loaded = times[best].sustained_ms > 0
                                 ? fmt::format("; back to back {:.4g}, not {:.4g}",
                                               times[best].sustained_ms, times[0].sustained_ms)
                                 : "";
  s.say("refine", fmt::format("{}: {} in place of {}: the module takes {:.4g} ms, not {:.4g} ms{}",
                              id, label(best), label(0), times[best].ms, times[0].ms, loaded));
  Refinement taken{.pattern = id,
                   .from = label(0),
                   .to = label(best),
                   .ms = times[best].ms,
                   .than = times[0].ms,
                   .sustained_ms = times[best].sustained_ms,
                   .than_sustained = times[0].sustained_ms};
  prefer(w, which[best]);
  w.refined = true;
  if (auto stored = remember(s, w); !stored) s.diagnostics.push_back(stored.error());
  return std::optional<Refinement>(std::move(taken));
}

}  // namespace

Result<Refined> refine_plan(Session& s, bridge::Peer& tracer, Chosen chosen) {
  Refined out{.chosen = std::move(chosen)};
  double total = 0;
  std::vector<std::pair<double, std::size_t>> order;  // time in the module, work
  for (const int o : out.chosen.choice.chosen) {
    const std::size_t at = out.chosen.origins[static_cast<std::size_t>(o)].work;
    const double ms = out.chosen.options[static_cast<std::size_t>(o)].ms;
    total += ms;
    const auto same =
        std::find_if(order.begin(), order.end(), [&](const auto& e) { return e.second == at; });
    if (same == order.end())
      order.emplace_back(ms, at);
    else
      same->first += ms;
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  for (const auto& [ms, at] : order) {
    Work& w = s.work[at];
    // What was reused has been through this.
    const bool fresh = !w.tuned->trials.empty();
    if (!fresh || ms < least_share * total) continue;
    if (s.stopped()) break;
    auto taken = refine_one(s, tracer, out.chosen, w);
    if (!taken) {
      s.diagnostics.push_back(taken.error());
    } else if (*taken) {
      out.exchanged.push_back(std::move(**taken));
    }
  }
  // By the times of the winners as they stand now: a run that finds them in the registry chooses by
  // these, and asks the module's clock what this one asks.
  if (!out.exchanged.empty()) out.chosen = choose_kernels(s);
  return out;
}

}  // namespace tessera::pipeline
