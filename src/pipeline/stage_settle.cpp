// The whole module decides: PyTorch's own ways to run it, and the plan's kernels with either for
// the rest, timed together. What wins is handed over.
#include <fmt/format.h>

#include "pipeline/settle.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

constexpr auto limit = std::chrono::seconds(1800);  // compilations of a large module among them

/// PyTorch's ways that count under the options: who asks for eager wants no compiler.
Json torch_runners(const Session& s) {
  return s.options.leftover == "eager" ? Json::array({"eager"})
                                       : Json::array({"eager", "inductor"});
}

Json leftover_runners(const Session& s) {
  if (s.options.leftover != "auto") return Json::array({s.options.leftover});
  // Who asked to stop waits for no further compilation.
  return s.stopped() ? Json::array({"eager"}) : Json::array({"eager", "inductor"});
}

/// Benchmarks of kernels ask what those take, wherever PyTorch is faster.
bool decides(const Session& s) {
  return !s.options.place_all && s.options.only_kind.empty();
}

/// Bytes of parameters, buffers and inputs.
int64_t resident_bytes(const graph::Graph& g) {
  int64_t sum = 0;
  for (const graph::ValueId v : g.inputs) {
    int64_t elements = 1;
    for (const int64_t n : g.value(v).type.shape) elements *= n;
    sum += elements * static_cast<int64_t>(size_of(g.value(v).type.dtype));
  }
  return sum;
}

/// The plan without kernels: the module is PyTorch's, and every pattern says why.
Status leave_to_torch(Session& s, const Way& way, const std::string& why) {
  for (const int o : s.choice.chosen)
    s.choice.left_out.emplace_back(
        o, fmt::format("the whole module is faster by {}: {}", way.runner, why));
  s.choice.chosen.clear();
  TESSERA_TRY(plan, plan_of_choice(s));
  s.plan = std::move(plan);
  s.plan["runner"] = way.runner;
  return {};
}

}  // namespace

Status prepare_baseline(Session& s, bridge::Peer& tracer) {
  if (!decides(s)) return {};
  s.say("baseline", "PyTorch's own ways to run the module");
  TESSERA_TRY(reply, tracer.call("prepare_torch", {{"runners", torch_runners(s)}}, limit));
  s.settled["baseline"] = reply.at("ways");
  for (const Way& w : ways_from(reply.at("ways"))) {
    s.say("baseline",
          w.reason.empty()
              ? fmt::format("{}: {:.4g} ms a call, {:.4g} ms back to back, ready in {:.1f} s",
                            w.runner, w.call_ms, w.back_ms, w.seconds)
              : fmt::format("{} cannot run: {}", w.runner, w.reason));
  }
  return {};
}

Status settle_plan(Session& s, bridge::Peer& tracer) {
  s.evaluator.reset();  // no compiler runs beside the clock, and its memory is free
  s.leftover = s.options.leftover == "auto" ? "eager" : s.options.leftover;
  s.plan["runner"] = "kernels";
  if (decides(s)) {
    const bool any = !s.choice.chosen.empty();
    s.say("settle", "every way to run the module, side by side");
    TESSERA_TRY(reply, tracer.call("settle",
                                   {{"plans", any ? Json::array({s.plan}) : Json::array()},
                                    {"runners", torch_runners(s)},
                                    {"leftovers", leftover_runners(s)},
                                    {"seconds", s.stopped() ? 1.0 : 2.0}},
                                   limit));
    const std::vector<Way> ways = ways_from(reply.at("ways"));
    const Decision decision = decide(ways, resident_bytes(s.found.graph));
    s.settled["ways"] = reply.at("ways");
    s.settled["why"] = decision.why;
    s.say("settle", decision.why);
    if (decision.way >= 0) {
      const Way& way = ways[static_cast<std::size_t>(decision.way)];
      s.settled["chosen"] = decision.way;
      if (way.plan)
        s.leftover = way.leftover;
      else
        TESSERA_CHECK(leave_to_torch(s, way, decision.why));
    }
  }
  s.plan["leftover_runner"] = s.leftover;
  return {};
}

}  // namespace tessera::pipeline
