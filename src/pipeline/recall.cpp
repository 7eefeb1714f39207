#include "pipeline/recall.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/elsewhere.h"
#include "pipeline/kept.h"
#include "pipeline/settle.h"

namespace tessera::pipeline {
namespace {

/// Of the way whole modules are timed: a change of it changes this.
constexpr std::string_view method = "whole modules/2";

/// `within`: the seconds of the search, where the answer is one of a search of so many; else 0.
std::string key_of(const Session& s, const Question& question, double within) {
  const Json& meta = s.found.graph.meta;
  Json key = {{"method", method},
              {"graph", graph::to_text(s.found.graph)},
              {"device", s.tools.device_name},
              {"toolchain", s.tools.toolchain},
              {"libraries", meta.value("libraries", Json())},
              {"circumstances", meta.value("circumstances", Json())},
              {"about", question.about}};
  if (within > 0) key["within"] = within;
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool quiet(const Json& row, const char* ms, const char* ci95) {
  return row.contains(ms) && row.value(ci95, 0.0) <= most_noise * row.value(ms, 0.0);
}

/// There was no time left to compile it: a search of as many seconds would say so again.
bool without_time(const Json& row) {
  return row.value("no_time", false);
}

/// Noise of a way, of its worse measure, relative; the figures are of `row`.
double noise_of_row(const Json& row) {
  double worst = 0;
  for (const char* measure : {"call", "back"})
    worst = std::max(worst, row.value(fmt::format("{}_ci95", measure), 0.0) /
                                row.at(fmt::format("{}_ms", measure)).get<double>());
  return worst;
}

/// However noisy, it is behind another way in both measures: nothing rests on how far.
bool surely_slower(const Json& row, const Json& ways) {
  const auto behind = [&](const std::string& measure) {
    const auto end = [&](const Json& way, double sign) {
      return way.value(measure + "_ms", 0.0) + sign * way.value(measure + "_ci95", 0.0);
    };
    return std::any_of(ways.begin(), ways.end(), [&](const Json& other) {
      return other.value("reason", "").empty() && other.contains("call_ms") &&
             other.contains("back_ms") && noise_of_row(other) <= most_noise &&
             end(other, 1) < end(row, -1);
    });
  };
  return behind("call") && behind("back");
}

std::string name_of_row(const Json& row) {
  return name_of(ways_from(Json::array({row})).front());
}

std::string why_not_kept_way(const Json& row, const Json& ways, bool disturbed) {
  if (without_time(row)) return "";
  if (const std::string reason = row.value("reason", ""); !reason.empty())
    return fmt::format("{} could not be timed: {}", name_of_row(row), reason);
  if (!row.contains("call_ms") || !row.contains("back_ms"))
    return name_of_row(row) + " has no time";
  const double noise = noise_of_row(row);
  if (!disturbed || noise <= most_noise || surely_slower(row, ways)) return "";
  return fmt::format("{} is known to {:.0f} %", name_of_row(row), 100 * noise);
}

}  // namespace

Json timed_part(const Json& plan) {
  Json steps = plan.at("steps");
  for (Json& step : steps) {
    step.erase("evidence");
    if (!step.contains("pattern")) continue;
    Json& pattern = step.at("pattern");
    pattern = {{"id", pattern.at("id")}, {"signature", pattern.at("signature")}};
  }
  return {{"steps", std::move(steps)}, {"runner", plan.at("runner")}};
}

std::string why_not_kept(const Json& answer, bool disturbed) {
  const Json ways = answer.value("ways", Json::array());
  for (const Json& row : ways)
    if (std::string why = why_not_kept_way(row, ways, disturbed); !why.empty()) return why;
  if (!ways.empty()) return "";
  const Json times = answer.value("times", Json());
  if (times.empty() || !answer.value("absent", Json::object()).empty())
    return "not everybody was timed";
  const bool all = std::all_of(times.begin(), times.end(), [](const Json& row) {
    return row.value("reason", "").empty() && quiet(row, "ms", "ci95");
  });
  return all ? "" : "not every time is reliable";
}

Result<Json> ask_or_recall(const Session& s, bridge::Peer& tracer, const Question& question) {
  const auto ask = [&](const Json& request) {
    return tracer.call(question.method, request, question.limit);
  };
  return ask_or_recall(s, Answerer(ask), question);
}

Result<Json> ask_or_recall(const Session& s, const Answerer& ask, const Question& question) {
  const bool remembers = s.options.use_registry && !s.options.retune;
  const Kept kept(s.tools.evaluation.log_folder.parent_path());
  for (const double within : {0.0, question.within}) {
    if (!remembers) break;
    if (auto answer = kept.find(question.method, key_of(s, question, within)))
      return std::move(*answer);
  }
  const Elsewhere others;
  TESSERA_TRY(answer, ask(question.request));
  const double elsewhere = others.processors();
  if (answer.contains("times")) answer["elsewhere"] = elsewhere;
  if (!remembers || s.stopped()) return answer;
  const std::string why_not = why_not_kept(answer, Elsewhere::disturbs(elsewhere));
  const Json ways = answer.value("ways", Json::array());
  if (!why_not.empty()) {
    s.say(ways.empty() ? "measure" : "settle", "the next run will measure again: " + why_not);
    return answer;
  }
  const bool cut = std::any_of(ways.begin(), ways.end(), without_time);
  if (cut && question.within <= 0) return answer;
  Json told = answer;
  told["measured"] = now_utc();
  kept.keep(question.method, key_of(s, question, cut ? question.within : 0), told);
  return answer;
}

}  // namespace tessera::pipeline
