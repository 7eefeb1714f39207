// The whole module decides: PyTorch's own ways to run it, and the plan's kernels with either for
// the rest, timed together. What wins is handed over.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <utility>

#include "compose/alternatives.h"
#include "graph/operand.h"
#include "pipeline/best_plan.h"
#include "pipeline/builds_ahead.h"
#include "pipeline/last_reason.h"
#include "pipeline/recall.h"
#include "pipeline/settle.h"
#include "pipeline/stages.h"
#include "pipeline/time_left.h"

namespace tessera::pipeline {
namespace {

constexpr auto limit = std::chrono::seconds(1800);  // compilations of a large module among them

/// PyTorch's ways that count under the options: who asks for eager wants no compiler.
Json torch_runners(const Session& s) {
  return s.options.leftover == "eager" ? Json::array({"eager"})
                                       : Json::array({"eager", "inductor"});
}

std::vector<std::string> leftover_runners(const Session& s, bool compiler_wrong) {
  if (compiler_wrong) return {"eager"};
  if (s.options.leftover != "auto") return {s.options.leftover};
  // Who asked to stop waits for no further compilation.
  if (s.stopped() || s.baseline.without_compiler) return {"eager"};
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

/// Bytes that a call has allocated at least while the pattern's kernel runs: its results, and what
/// it reads of other nodes' results.
int64_t call_bytes_during(const Session& s, const rules::Pattern& p) {
  const graph::Graph& g = s.found.graph;
  std::set<graph::ValueId> held(p.outputs.begin(), p.outputs.end());
  for (const graph::ValueId v : p.inputs) held.insert(graph::resolve(g, v).base);
  int64_t sum = 0;
  for (const graph::ValueId v : held)
    if (g.value(v).origin == graph::Origin::node) sum += bytes_of(g.value(v));
  return sum;
}

Result<composer::Plan> plan_with(const Session& s, Chosen chosen, std::vector<int> these,
                                 const std::string& leftover_runner) {
  chosen.choice.chosen = std::move(these);
  return plan_of(s, chosen, leftover_runner);
}

/// All kernels that were chosen; and those of products alone: what is pointwise Inductor fuses
/// across patterns, and eager writes over its operands, where a kernel needs memory of its own.
Result<std::vector<Variant>> variants_of(const Session& s, const Chosen& chosen,
                                         const std::string& leftover_runner,
                                         const std::vector<std::string>& leftovers) {
  std::vector<Variant> out;
  const std::vector<int>& all = chosen.choice.chosen;
  if (all.empty()) return out;
  TESSERA_TRY(whole, plan_of(s, chosen, leftover_runner));
  out.push_back({all, std::move(whole), leftovers});
  std::vector<int> products;
  for (const int o : all) {
    if (is_of_products(s.found.graph, *chosen.options[static_cast<std::size_t>(o)].pattern))
      products.push_back(o);
  }
  if (products.empty() || products.size() == all.size()) return out;
  TESSERA_TRY(some, plan_with(s, chosen, products, leftover_runner));
  out.push_back({std::move(products), std::move(some), leftovers});
  return out;
}

/// What two moments of a quiet machine differ by, relative (NOISE of settling.py); more where
/// PyTorch's own times say so.
double noise_of_baselines(const Session& s) {
  constexpr double quiet = 0.01;
  double noise = quiet;
  if (s.baseline.ways.is_null()) return noise;
  for (const Way& w : ways_from(s.baseline.ways)) noise = std::max(noise, noise_of(w));
  return std::min(noise, most_noise);
}

/// Sets of kernels beside the one that was chosen.
struct Beside {
  std::vector<Variant> near;  // which may save as much: baselines were timed at other moments
  std::vector<Variant> less;
};

/// How many rests of plans Inductor may compile, beside the module (docs/measuring.md).
constexpr int most_compiled_rests = 2;

bool compiles(const Variant& v) {
  return std::find(v.leftovers.begin(), v.leftovers.end(), "inductor") != v.leftovers.end();
}

/// `variants`: of what was chosen. Inductor compiles their rests first; what is left of its turns
/// goes to the alternatives that save most, and the others' rests are run without it.
Result<Beside> beside(const Session& s, const Chosen& chosen, const std::vector<Variant>& variants,
                      const std::string& leftover_runner,
                      const std::vector<std::string>& leftovers) {
  constexpr std::size_t most = 4;
  Beside out;
  auto turns = most_compiled_rests - std::count_if(variants.begin(), variants.end(), compiles);
  std::vector<composer::Alternative> found =
      composer::alternatives(s.found.graph, chosen.options, chosen.choice, noise_of_baselines(s));
  if (found.size() > most) found.resize(most);
  for (composer::Alternative& one : found) {
    TESSERA_TRY(plan, plan_with(s, chosen, one.chosen, leftover_runner));
    Variant v{std::move(one.chosen), std::move(plan), leftovers};
    if (compiles(v) && turns-- <= 0) std::erase(v.leftovers, "inductor");
    if (!v.leftovers.empty()) (one.near ? out.near : out.less).push_back(std::move(v));
  }
  return out;
}

/// The tracer compiles the last plan's rest first: what was chosen comes before alternatives.
void put_in_front(std::vector<Variant>& variants, std::vector<Variant>&& more) {
  variants.insert(variants.begin(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

std::set<int> options_of(const std::vector<Variant>& variants) {
  std::set<int> out;
  for (const Variant& v : variants) out.insert(v.chosen.begin(), v.chosen.end());
  return out;
}

struct Timed {
  std::vector<Way> ways;
  Decision decision;
  Decided told;
  [[nodiscard]] const Way* taken() const {
    return decision.way < 0 ? nullptr : &ways[static_cast<std::size_t>(decision.way)];
  }
};

/// What Inductor may take for the rests of plans, as `settle` wants it: the seconds that are left
/// of the search. Null where they are not counted: who asked for one way to run the rest gets it,
/// whatever it takes.
Json compile_budget(const Session& s, const Compilers& compilers) {
  if (s.options.seconds == 0 || s.options.leftover != "auto") return nullptr;
  return {{"seconds", compilers.left_seconds},
          {"expected", s.baseline.rest_seconds},
          {"ends", s.options.total_seconds > 0}};
}

Result<Timed> time_ways(const Session& s, bridge::Peer& tracer,
                        const std::vector<Variant>& variants, double seconds, const Json& compile) {
  Json plans = Json::array();
  Json timed = Json::array();
  for (const Variant& v : variants) {
    plans.push_back({{"plan", to_json(v.plan)}, {"leftovers", v.leftovers}});
    timed.push_back({{"plan", timed_part(plans.back().at("plan"))}, {"leftovers", v.leftovers}});
  }
  TESSERA_TRY(reply, ask_or_recall(s, tracer,
                                   {.method = "settle",
                                    .request = {{"plans", plans},
                                                {"runners", torch_runners(s)},
                                                {"seconds", seconds},
                                                {"compile", compile}},
                                    .about = {{"plans", timed}, {"runners", torch_runners(s)}},
                                    .limit = limit,
                                    .within = s.options.seconds}));
  Timed out{.ways = ways_from(reply.at("ways")), .decision = {}, .told = {}};
  out.decision = decide(out.ways, resident_bytes(s.found.graph));
  out.told = {
      .ways = reply.at("ways"), .why = out.decision.why, .measured = reply.value("measured", "")};
  if (out.decision.way >= 0) out.told.chosen = out.decision.way;
  return out;
}

/// PyTorch's own ways as they were timed before the search, where there is no plan to time beside
/// them and one of them is surely the first; else nothing.
std::optional<Timed> of_baseline(const Session& s, const std::vector<Variant>& variants,
                                 const Beside& more) {
  if (!variants.empty() || !more.near.empty() || !more.less.empty() || s.baseline.ways.is_null())
    return std::nullopt;
  Timed out{.ways = ways_from(s.baseline.ways), .decision = {}, .told = {}};
  if (!one_is_surely_first(out.ways)) return std::nullopt;
  out.decision = decide(out.ways, resident_bytes(s.found.graph));
  out.told = {.ways = s.baseline.ways, .why = out.decision.why, .measured = ""};
  if (out.decision.way >= 0) out.told.chosen = out.decision.way;
  s.say("settle", out.decision.why);
  return out;
}

/// Seconds that Inductor took for the rests of plans.
double compiled_seconds(const std::vector<Way>& ways) {
  double sum = 0;
  for (const Way& w : ways) sum += w.plan && w.leftover == "inductor" ? w.seconds : 0;
  return sum;
}

/// Seconds that the ways' clocks may take, four times as long where it stays undecided. Who asks
/// for a short search does not wait longer for what decides about it.
double clock_seconds(const Session& s) {
  constexpr double usual = 2.0, of_search = 0.1, least = 0.5, after_stop = 1.0;
  if (s.stopped()) return after_stop;
  if (s.options.seconds == 0) return usual;
  const double search = std::min(s.options.seconds - s.options.spent, seconds_left(s.options));
  return std::clamp(of_search * search, least, usual);
}

/// The same without compilers for the rest, where another can run it.
std::vector<Variant> uncompiled(std::vector<Variant> variants) {
  for (Variant& v : variants)
    if (v.leftovers.size() > 1) std::erase(v.leftovers, "inductor");
  return variants;
}

/// The variants and their times. Alternatives that save less by the clock of single kernels are
/// among them, for that clock does not decide; Inductor compiles their rests only where one of them
/// or PyTorch comes first without.
Result<Timed> time_with_alternatives(const Session& s, bridge::Peer& tracer,
                                     std::vector<Variant>& variants, Beside more,
                                     Compilers compilers) {
  s.say("settle", "every way to run the module, side by side");
  const double seconds = clock_seconds(s);
  put_in_front(variants, std::move(more.near));
  std::vector<Variant> all = variants;
  put_in_front(all, uncompiled(more.less));
  TESSERA_TRY(timed, time_ways(s, tracer, all, seconds, compile_budget(s, compilers)));
  s.say("settle", timed.decision.why);
  const Way* first = timed.taken();
  const int less = static_cast<int>(more.less.size());
  const bool open = first != nullptr && (!first->plan || *first->plan < less);
  if (!open || std::none_of(more.less.begin(), more.less.end(), compiles)) {
    variants = std::move(all);
    return timed;
  }
  s.say("settle", fmt::format("not what was chosen: {} other sets of kernels with Inductor, too",
                              std::count_if(more.less.begin(), more.less.end(), compiles)));
  compilers.left_seconds -= compiled_seconds(timed.ways);
  put_in_front(variants, std::move(more.less));
  TESSERA_TRY(again, time_ways(s, tracer, variants, seconds, compile_budget(s, compilers)));
  s.say("settle", again.decision.why);
  return again;
}

}  // namespace

bool settles(const Session& s) {
  return !s.options.place_all && s.options.only_kind.empty();
}

std::optional<int64_t> workspace_limit(const Session& s, const Work& w) {
  if (!s.baseline.call_bytes) return std::nullopt;
  int64_t most = 0;
  for (const int i : w.patterns) most = std::max(most, call_bytes_during(s, s.pattern(i)));
  return std::max<int64_t>(0, *s.baseline.call_bytes - most);
}

Result<Baseline> prepare_baseline(Session& s, bridge::Peer& tracer) {
  Baseline out;
  if (!settles(s)) return out;
  s.say("baseline", "PyTorch's own ways to run the module");
  const Json about = {{"runners", torch_runners(s)}};
  Json runners = about;
  runners["compile"] = compile_limit(s.options);
  const auto compiled_and_timed = [&](const Json& request) -> Result<Json> {
    BuildsAhead ahead(s);
    TESSERA_TRY(compiled, tracer.call("compile_torch", request, limit));
    if (const int built = ahead.end(); built > 0)
      s.say("baseline", fmt::format("{} kernels were built meanwhile", built));
    return tracer.call("prepare_torch", request, limit);
  };
  TESSERA_TRY(reply,
              ask_or_recall(
                  s, Answerer(compiled_and_timed),
                  {.method = "prepare_torch", .request = runners, .about = about, .limit = limit}));
  out.ways = reply.at("ways");
  const std::vector<Way> ways = ways_from(out.ways);
  out.eager_ms = ways.front().reason.empty() ? ways.front().call_ms : 0;
  for (const Way& w : ways) {
    out.without_compiler |= w.runner == "inductor" && w.no_time;
    if (w.reason.empty() && w.peak_bytes > 0 && (!out.call_bytes || w.runner == "inductor"))
      out.call_bytes = allowed_bytes(w.peak_bytes, resident_bytes(s.found.graph));
    s.say("baseline",
          w.reason.empty()
              ? fmt::format("{}: {:.4g} ms a call, {:.4g} ms back to back, ready in {:.1f} s",
                            w.runner, w.call_ms, w.back_ms, w.seconds)
              : fmt::format("{} cannot run: {}", w.runner, w.reason));
    // What the device takes: the host's part shows in single calls.
    if (w.reason.empty() && w.runner == "inductor" && ways.front().reason.empty())
      out.fused_share = fused_share(s.found.graph, *s.found.arch, ways.front().back_ms, w.back_ms);
    if (w.runner == "inductor" && w.reason.empty() && leftover_runners(s, false).size() > 1) {
      out.rest_seconds = rest_seconds(w.seconds);
      const double gain = ways.front().reason.empty() ? ways.front().back_ms / w.back_ms : 1;
      const double search =
          std::min(s.options.seconds - s.options.spent, left_for_search(s.options, out.eager_ms));
      out.kept_seconds = kept_seconds(out.rest_seconds, search, gain);
    }
  }
  return out;
}

Result<Settled> settle_plan(Session& s, bridge::Peer& tracer, Chosen chosen,
                            const Compilers& compilers) {
  s.tools.evaluator.reset();  // no compiler runs beside the clock, and its memory is free
  const std::string rest =
      s.options.leftover == "auto" || compilers.wrong ? "eager" : s.options.leftover;
  TESSERA_TRY(whole, plan_of(s, chosen, rest));
  Settled out{.chosen = std::move(chosen), .plan = std::move(whole)};
  if (!settles(s)) return out;
  const std::vector<std::string> leftovers = leftover_runners(s, compilers.wrong);
  TESSERA_TRY(variants, variants_of(s, out.chosen, rest, leftovers));
  TESSERA_TRY(more, beside(s, out.chosen, variants, rest, leftovers));
  Timed timed;
  if (auto known = of_baseline(s, variants, more)) {
    timed = std::move(*known);
  } else {
    TESSERA_TRY(now, time_with_alternatives(s, tracer, variants, std::move(more), compilers));
    timed = std::move(now);
  }
  out.decided = timed.told;
  const Way* way = timed.taken();
  if (way == nullptr) return out;
  if (way->plan) {
    const Variant& taken = variants.at(static_cast<std::size_t>(*way->plan));
    settle_on(out.chosen, taken.chosen,
              way->leftover == "inductor"
                  ? "with its neighbours in one kernel of Inductor the module is faster"
                  : "run by PyTorch over its operands the module is faster, or needs less memory",
              options_of(variants));
    // Once more, as what was left out has its reason now.
    TESSERA_TRY(plan, plan_of(s, out.chosen, way->leftover));
    out.plan = std::move(plan);
    return out;
  }
  settle_on(out.chosen, {},
            fmt::format("the whole module is faster by {}: {}", way->runner, timed.decision.why),
            options_of(variants));
  TESSERA_TRY(none, plan_of(s, out.chosen, rest));
  out.plan = std::move(none);
  out.plan.runner = way->runner;
  return out;
}

Result<Checkpoint> note_checkpoint(const Session& s, double seconds) {
  TESSERA_TRY(variants, variants_of(s, choose_kernels(s), "eager", leftover_runners(s, false)));
  return Checkpoint{.seconds = seconds, .variants = std::move(variants), .plan = {}, .why = {}};
}

Result<std::vector<Checkpoint>> settle_checkpoints(const Session& s, bridge::Peer& tracer,
                                                   const Chosen& chosen,
                                                   std::vector<Checkpoint> noted) {
  for (Checkpoint& checkpoint : noted) {
    TESSERA_TRY(timed, time_ways(s, tracer, checkpoint.variants, 1.0, nullptr));
    checkpoint.why = timed.decision.why;
    const Way* way = timed.taken();
    if (way == nullptr) continue;
    if (way->plan) {
      checkpoint.plan = checkpoint.variants.at(static_cast<std::size_t>(*way->plan)).plan;
      checkpoint.plan->leftover_runner = way->leftover;
    } else {
      TESSERA_TRY(none, plan_with(s, chosen, {}, "eager"));
      checkpoint.plan = std::move(none);
      checkpoint.plan->runner = way->runner;
    }
  }
  return noted;
}

}  // namespace tessera::pipeline
