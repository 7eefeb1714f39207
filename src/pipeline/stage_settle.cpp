// The whole module decides: PyTorch's own ways to run it, and the plan's kernels with either for
// the rest, timed together. What wins is handed over.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "pipeline/best_plan.h"
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

std::vector<std::string> leftover_runners(const Session& s) {
  if (s.compiler_wrong) return {"eager"};
  if (s.options.leftover != "auto") return {s.options.leftover};
  // Who asked to stop waits for no further compilation.
  if (s.stopped()) return {"eager"};
  return {"eager", "inductor"};
}

int64_t bytes_of(const graph::Value& v) {
  int64_t elements = 1;
  for (const int64_t n : v.type.shape) elements *= n;
  return elements * static_cast<int64_t>(size_of(v.type.dtype));
}

/// Bytes of parameters, buffers and inputs.
int64_t resident_bytes(const graph::Graph& g) {
  int64_t sum = 0;
  for (const graph::ValueId v : g.inputs) sum += bytes_of(g.value(v));
  return sum;
}

Result<composer::Plan> plan_with(Session& s, std::vector<int> chosen) {
  const std::vector<int> all = std::exchange(s.choice.chosen, std::move(chosen));
  auto plan = plan_of_choice(s);
  s.choice.chosen = all;
  return plan;
}

/// All kernels that were chosen; and those of products alone: what is pointwise Inductor fuses
/// across patterns, and eager writes over its operands, where a kernel needs memory of its own.
Result<std::vector<Variant>> variants_of(Session& s) {
  std::vector<Variant> out;
  if (s.choice.chosen.empty()) return out;
  const std::vector<std::string> leftovers = leftover_runners(s);
  TESSERA_TRY(whole, plan_with(s, s.choice.chosen));
  out.push_back({s.choice.chosen, std::move(whole), leftovers});
  std::vector<int> products;
  for (const int o : s.choice.chosen) {
    if (is_of_products(s.found.graph, *s.placed_options[static_cast<std::size_t>(o)].pattern))
      products.push_back(o);
  }
  if (products.empty() || products.size() == s.choice.chosen.size()) return out;
  TESSERA_TRY(some, plan_with(s, products));
  out.push_back({std::move(products), std::move(some), leftovers});
  return out;
}

/// Keeps these of the chosen options; the others say why they went.
void keep_only(Session& s, const std::vector<int>& chosen, const std::string& why) {
  for (const int o : s.choice.chosen) {
    if (std::find(chosen.begin(), chosen.end(), o) == chosen.end())
      s.choice.left_out.emplace_back(o, why);
  }
  s.choice.chosen = chosen;
}

struct Settled {
  std::vector<Way> ways;
  Decision decision;
};

/// What Inductor may take for the rests of plans, as `settle` wants it: the seconds that are left
/// of the search. Null where they are not counted: who asked for one way to run the rest gets it,
/// whatever it takes.
Json compile_budget(const Session& s) {
  if (s.options.seconds == 0 || s.options.leftover != "auto") return nullptr;
  return {{"seconds", s.left_seconds}, {"expected", s.rest_seconds}};
}

Result<Settled> time_ways(Session& s, bridge::Peer& tracer, const std::vector<Variant>& variants,
                          double seconds, const Json& compile) {
  Json plans = Json::array();
  for (const Variant& v : variants)
    plans.push_back({{"plan", to_json(v.plan)}, {"leftovers", v.leftovers}});
  const Json request = {
      {"plans", plans}, {"runners", torch_runners(s)}, {"seconds", seconds}, {"compile", compile}};
  TESSERA_TRY(reply, tracer.call("settle", request, limit));
  Settled out{.ways = ways_from(reply.at("ways")), .decision = {}};
  out.decision = decide(out.ways, resident_bytes(s.found.graph));
  s.settled["ways"] = reply.at("ways");
  s.settled["why"] = out.decision.why;
  if (out.decision.way >= 0) s.settled["chosen"] = out.decision.way;
  return out;
}

}  // namespace

bool settles(const Session& s) {
  return !s.options.place_all && s.options.only_kind.empty();
}

std::optional<int64_t> workspace_limit(const Session& s, const Work& w) {
  if (!s.call_bytes) return std::nullopt;
  int64_t results = 0;
  for (const graph::ValueId v : s.pattern(w.patterns.front()).outputs)
    results += bytes_of(s.found.graph.value(v));
  return std::max<int64_t>(0, *s.call_bytes - results);
}

Status prepare_baseline(Session& s, bridge::Peer& tracer) {
  if (!settles(s)) return {};
  s.say("baseline", "PyTorch's own ways to run the module");
  TESSERA_TRY(reply, tracer.call("prepare_torch", {{"runners", torch_runners(s)}}, limit));
  s.settled["baseline"] = reply.at("ways");
  const std::vector<Way> ways = ways_from(reply.at("ways"));
  for (const Way& w : ways) {
    if (w.reason.empty() && w.peak_bytes > 0 && (!s.call_bytes || w.runner == "inductor"))
      s.call_bytes = allowed_bytes(w.peak_bytes, resident_bytes(s.found.graph));
    s.say("baseline",
          w.reason.empty()
              ? fmt::format("{}: {:.4g} ms a call, {:.4g} ms back to back, ready in {:.1f} s",
                            w.runner, w.call_ms, w.back_ms, w.seconds)
              : fmt::format("{} cannot run: {}", w.runner, w.reason));
    // What the device takes: the host's part shows in single calls.
    if (w.reason.empty() && w.runner == "inductor" && ways.front().reason.empty())
      s.fused_share = fused_share(s.found.graph, *s.found.arch, ways.front().back_ms, w.back_ms);
    if (w.runner == "inductor" && w.reason.empty() && leftover_runners(s).size() > 1) {
      s.rest_seconds = rest_seconds(w.seconds);
      s.kept_seconds = kept_seconds(s.rest_seconds, s.options.seconds - s.options.spent);
    }
  }
  return {};
}

Status settle_plan(Session& s, bridge::Peer& tracer) {
  s.evaluator.reset();  // no compiler runs beside the clock, and its memory is free
  s.leftover = s.options.leftover == "auto" || s.compiler_wrong ? "eager" : s.options.leftover;
  s.plan->leftover_runner = s.leftover;
  if (!settles(s)) return {};
  s.say("settle", "every way to run the module, side by side");
  TESSERA_TRY(variants, variants_of(s));
  TESSERA_TRY(found, time_ways(s, tracer, variants, s.stopped() ? 1.0 : 2.0, compile_budget(s)));
  s.say("settle", found.decision.why);
  if (found.decision.way < 0) return {};
  const Way& way = found.ways[static_cast<std::size_t>(found.decision.way)];
  if (way.plan) {
    const Variant& taken = variants.at(static_cast<std::size_t>(*way.plan));
    keep_only(s, taken.chosen,
              way.leftover == "inductor"
                  ? "with its neighbours in one kernel of Inductor the module is faster"
                  : "run by PyTorch over its operands the module is faster, or needs less memory");
    s.plan = taken.plan;
    s.leftover = way.leftover;
  } else {
    keep_only(s, {},
              fmt::format("the whole module is faster by {}: {}", way.runner, found.decision.why));
    TESSERA_TRY(plan, plan_with(s, {}));
    s.plan = std::move(plan);
    s.plan->runner = way.runner;
  }
  s.plan->leftover_runner = s.leftover;
  return {};
}

Status note_checkpoint(Session& s, double seconds) {
  choose_kernels(s);
  TESSERA_TRY(variants, variants_of(s));
  s.noted.push_back({.seconds = seconds, .variants = std::move(variants)});
  return {};
}

Status settle_checkpoints(Session& s, bridge::Peer& tracer) {
  const Json settled = s.settled;
  for (Checkpoint& checkpoint : s.noted) {
    TESSERA_TRY(found, time_ways(s, tracer, checkpoint.variants, 1.0, nullptr));
    checkpoint.why = found.decision.why;
    if (found.decision.way < 0) continue;
    const Way& way = found.ways[static_cast<std::size_t>(found.decision.way)];
    if (way.plan) {
      checkpoint.plan = checkpoint.variants.at(static_cast<std::size_t>(*way.plan)).plan;
      checkpoint.plan->leftover_runner = way.leftover;
    } else {
      TESSERA_TRY(none, plan_with(s, {}));
      checkpoint.plan = std::move(none);
      checkpoint.plan->runner = way.runner;
      checkpoint.plan->leftover_runner = "eager";
    }
  }
  s.settled = settled;
  return {};
}

Json to_json(const Checkpoint& checkpoint) {
  Json row = {{"seconds", checkpoint.seconds}, {"why", checkpoint.why}};
  if (checkpoint.plan) row["plan"] = to_json(*checkpoint.plan);
  return row;
}

}  // namespace tessera::pipeline
