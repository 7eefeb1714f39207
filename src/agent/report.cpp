#include "agent/report.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"

namespace tessera::agent {
namespace {

/// Null where there is nothing to take a share of.
Json share(int of, int all) {
  return all > 0 ? Json(static_cast<double>(of) / all) : Json();
}

int passed_within(const Report& r, int sources) {
  return static_cast<int>(std::count_if(r.patterns.begin(), r.patterns.end(), [&](const Worked& w) {
    return w.first_passed > 0 && w.first_passed <= sources;
  }));
}

Json json_of(const Worked& w) {
  Json tried = Json::array();
  for (const Tried& t : w.tried)
    tried.push_back({{"number", t.number},
                     {"outcome", t.outcome},
                     {"ms", t.ms},
                     {"note", t.note},
                     {"cause", t.cause}});
  return {{"id", w.id},
          {"rule", w.rule},
          {"summary", w.summary},
          {"tried", std::move(tried)},
          {"judged", w.judged},
          {"verified", w.verified},
          {"first_passed", w.first_passed},
          {"best", w.best},
          {"best_ms", w.best_ms},
          {"eager_ms", w.eager_ms},
          {"tunables", w.tunables},
          {"won", w.won},
          {"ended", w.ended}};
}

Json metrics_of(const Report& r) {
  int judged = 0, verified = 0;
  for (const Worked& w : r.patterns) {
    judged += w.judged;
    verified += w.verified;
  }
  const int all = static_cast<int>(r.patterns.size());
  return {{"calls", r.spent.calls},
          {"tokens_in", r.spent.usage.input},
          {"tokens_out", r.spent.usage.output},
          {"tokens_exact", r.spent.usage.exact},
          {"seconds", r.spent.seconds},
          {"model_seconds", r.spent.model_seconds},
          {"money", r.spent.money ? Json(*r.spent.money) : Json()},
          {"discovery_success", share(r.found, r.named)},
          {"pass_at_1", share(passed_within(r, 1), all)},
          {"pass_at_3", share(passed_within(r, 3), all)},
          {"verification_rate", share(verified, judged)}};
}

std::string percent(const Json& share) {
  return share.is_null() ? "-" : fmt::format("{:.0f} %", 100 * share.get<double>());
}

std::string line_of(const Worked& w) {
  const std::string what = w.best.empty()
                               ? "no source passed"
                               : fmt::format("{:.4g} ms, eager {:.4g} ms{}", w.best_ms, w.eager_ms,
                                             w.won ? ", stored" : ", not the fastest");
  std::string out = fmt::format("{:<4} {:<10} {} sources: {}\n", w.id, w.rule, w.judged, what);
  if (!w.ended.empty()) out += fmt::format("     {}\n", w.ended);
  return out;
}

}  // namespace

Json to_json(const Report& r) {
  Json out = {{"schema", "tessera.mind_report/1"},
              {"model", r.model},
              {"metrics", metrics_of(r)},
              {"stopped", r.stopped},
              {"plan", Json::array()},
              {"proposals", r.proposals},
              {"patterns", Json::array()},
              {"failure", r.failure ? tessera::to_json(*r.failure) : Json()}};
  for (const auto& [id, why] : r.plan) out["plan"].push_back({{"id", id}, {"reason", why}});
  for (const Worked& w : r.patterns) out["patterns"].push_back(json_of(w));
  return out;
}

std::string to_text(const Report& r) {
  const Json m = metrics_of(r);
  std::string out = fmt::format("\nby the language model {}:\n", r.model);
  for (const Worked& w : r.patterns) out += line_of(w);
  for (const std::string& p : r.proposals) out += "proposed: " + p + "\n";
  out += fmt::format("{} calls, {} tokens read and {} written{}, {:.0f} s, {}\n", r.spent.calls,
                     r.spent.usage.input, r.spent.usage.output,
                     r.spent.usage.exact ? "" : " (partly estimated)", r.spent.seconds,
                     r.spent.money ? fmt::format("${:.4f}", *r.spent.money) : "no price known");
  out += fmt::format("found of what it named {}, pass@1 {}, pass@3 {}, verified {}\n",
                     percent(m.at("discovery_success")), percent(m.at("pass_at_1")),
                     percent(m.at("pass_at_3")), percent(m.at("verification_rate")));
  if (!r.stopped.empty()) out += "it ended early: " + r.stopped + "\n";
  return out;
}

}  // namespace tessera::agent
