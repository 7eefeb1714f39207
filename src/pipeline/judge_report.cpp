// What a judgement says, as data and for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/judge.h"

namespace tessera::pipeline {
namespace {

std::string work_text(const Json& work) {
  const std::string label = work.at("label");
  const auto by = work.at("by_library").get<std::vector<std::string>>();
  if (label == "own") return "work: its own; no op of PyTorch computes\n";
  std::string out =
      fmt::format("work: {}", label == "library" ? "the library's" : "in part a library's");
  if (!by.empty()) out += fmt::format(" ({})", fmt::join(by, ", "));
  const auto names = work.at("names").get<std::vector<std::string>>();
  if (!names.empty()) out += fmt::format("; its text names {}", fmt::join(names, ", "));
  return out + "\n";
}

std::string trials_text(const Json& trials) {
  std::string out;
  for (const Json& t : trials) {
    if (!t.contains("errors")) continue;
    const Json& e = t.at("errors");
    out +=
        fmt::format("  {:10} {}: rms {:.2g} of {:.2g} allowed, eager's {:.2g}\n",
                    t.at("inputs").get<std::string>(),
                    t.at("build") == 0 ? "first seed " : "second seed", e.at("rms").get<double>(),
                    e.at("budget_rms").get<double>(), e.at("baseline_rms").get<double>());
  }
  return out.empty() ? "" : "errors against fp64:\n" + out;
}

}  // namespace

Json to_json(const Judging& given, const Judged& judged) {
  Json speedups = Json::object();
  if (const auto& m = judged.verdict.measured; m && m->ms > 0) {
    for (const attempt::Peer& p : m->peers)
      if (attempt::comparable(*m, p)) speedups[p.name] = p.ms / m->ms;
  }
  return {{"schema", "tessera.judged/1"},
          {"file", judged.file},
          {"class", given.cls},
          {"reference", given.reference.empty() ? judged.file : given.reference},
          {"confined", given.confined},
          {"claim", given.synthesized ? "synthesized" : "any"},
          {"passed", judged.verdict.passed()},
          {"failure", judged.failure},
          {"cause", judged.verdict.cause},
          {"speedups", std::move(speedups)},
          {"work", judged.work},
          {"trials", judged.trials},
          {"clock", judged.clock},
          {"verdict", attempt::to_json(judged.verdict)}};
}

std::string to_text(const Judged& judged) {
  std::string out = attempt::to_text(judged.verdict) + trials_text(judged.trials);
  if (!judged.work.is_null()) out += work_text(judged.work);
  if (judged.verdict.passed()) {
    out += "passed: right on every kind of input, and the times are the outside clock's\n";
  } else {
    out += fmt::format("failed: {}\n", judged.failure);
  }
  return out;
}

}  // namespace tessera::pipeline
