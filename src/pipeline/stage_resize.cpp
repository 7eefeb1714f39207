// The module at other sizes: the configurations that won are realized again for each size,
// composed, and verified end to end. Nothing is searched and nothing of it is placed or stored: it
// shows that the kernels are right because they are right, not because of one shape.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "pipeline/kept.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

using Clock = std::chrono::steady_clock;
using Winner = kernel::Winner;

inline constexpr Code resize_wrong{"TS0503", "verify.resize_wrong"};

constexpr int wanted = 2;             // sizes to verify
constexpr double least_seconds = 40;  // for all of them together
constexpr double most_seconds = 300;
constexpr double least_for_a_kernel = 2;  // seconds: one build and one check
constexpr std::string_view time_spent = "the time for other sizes was spent";

// The bounded share of the time: of what the search took.
double seconds_for(const Session& s) {
  const double share = s.options.effort == "max" ? 0.5 : 0.2;
  return std::clamp(share * s.timings.value("evaluate", 0.0), least_seconds, most_seconds);
}

// A pattern's place in the module: the names of the ops that it computes. Traces of one module at
// two sizes name them alike.
std::string place_of(const Session& s, const rules::Pattern& p) {
  std::vector<std::string> names;
  for (const graph::NodeId n : p.computing) names.push_back(s.found.graph.node(n).name);
  return p.rule + " " + join(names, " ");
}

std::map<std::string, const Winner*> placed_in(const Session& s, const Settled& settled) {
  std::map<std::string, const Winner*> out;
  for (const composer::Step& step : settled.plan.steps) {
    if (const auto* placed = std::get_if<composer::Placed>(&step))
      out[place_of(s, *placed->pattern)] = &placed->winner;
  }
  return out;
}

// Alone with the launch that won, where it is offered again.
kernel::Candidate with_one_launch(kernel::Candidate c, const Winner& like) {
  if (c.launches.empty()) return c;
  kernel::Launch kept = c.launches.front();
  if (!like.candidate.launches.empty()) {
    const Json& knobs = like.candidate.launches.at(static_cast<std::size_t>(like.launch)).knobs;
    for (const kernel::Launch& l : c.launches) {
      if (l.knobs == knobs) kept = l;
    }
  }
  c.launches = {std::move(kept)};
  return c;
}

// The configuration that won, if it is offered at this size too; else the first offers of its
// realizer.
std::vector<kernel::Candidate> offered_again(const evaluate::Offers& offers, const Winner& like) {
  constexpr std::size_t others = 2;
  std::vector<kernel::Candidate> near;
  for (const kernel::Candidate& c : offers.candidates) {
    if (c.realizer != like.candidate.realizer) continue;
    if (c.config == like.candidate.config) return {with_one_launch(c, like)};
    if (near.size() < others) near.push_back(with_one_launch(c, like));
  }
  return near;
}

struct Resized {
  int kernels = 0;  // placed, of `of`
  int of = 0;
  std::string cut;  // why some are missing
};

// One kernel for each pattern at a place where the module has one.
Result<Resized> realize_again(const std::map<std::string, const Winner*>& wanted_kernels,
                              Session& r, Clock::time_point deadline) {
  Resized out{.of = static_cast<int>(wanted_kernels.size())};
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stop = r.context.stop != nullptr ? *r.context.stop : never;
  for (Work& w : r.work) {
    const rules::Pattern& p = r.pattern(w.patterns.front());
    const auto like = std::find_if(w.patterns.begin(), w.patterns.end(), [&](int i) {
      return wanted_kernels.contains(place_of(r, r.pattern(i)));
    });
    if (like == w.patterns.end()) continue;
    const Winner& winner = *wanted_kernels.at(place_of(r, r.pattern(*like)));
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    if (left < least_for_a_kernel || r.stopped()) {
      out.cut = r.stopped() ? "stopped" : time_spent;
      break;
    }
    const auto offers = evaluate::offers(p, r.found.graph, *r.found.arch);
    const auto candidates = offered_again(offers, winner);
    if (candidates.empty()) {
      out.cut = fmt::format("{} is not offered for {}", winner.candidate.realizer, p.summary);
      continue;
    }
    TESSERA_TRY(tuned, r.tools.evaluator->tune(p, candidates, Json::array(), left, stop, {}));
    if (tuned.winners.empty()) {
      // A search that was cut short says nothing of the kernel.
      out.cut = Clock::now() < deadline
                    ? fmt::format("no kernel for {} passed its gates", p.summary)
                    : std::string(time_spent);
      continue;
    }
    out.kernels += static_cast<int>(w.patterns.size());
    w.tuned = std::move(tuned);
  }
  return out;
}

// What counts at another size is whether it is right.
Options options_for(const Session& s, const Rewritten& rewritten) {
  Options options = s.options;
  options.effort = "quick";
  options.arch = s.found.arch->name;
  options.place_all = true;
  options.dump.clear();
  options.use_registry = false;
  options.rewrites_off = rewritten.off;
  return options;
}

// The journey at one size, from its trace to the check against fp64.
Result<Json> verify_at(const Session& s, bridge::Peer& tracer, const Settled& settled,
                       const Options& options, const Json& traced, Clock::time_point deadline) {
  const Context quiet{.progress = [](const Json&) {}, .stop = s.context.stop};
  Session r{.options = options, .context = quiet};
  TESSERA_TRY(found, discover(traced, options));
  r.found = std::move(found);
  r.tools.evaluation = s.tools.evaluation;
  r.tools.evaluation.effort = options.effort;
  r.tools.device_name = s.tools.device_name;
  r.tools.evaluator =
      std::make_unique<evaluate::Evaluator>(r.tools.evaluation, r.found.graph, *r.found.arch);
  r.work = group_by_signature(r);
  TESSERA_TRY(made, realize_again(placed_in(s, settled), r, deadline));
  const Chosen chosen = choose_kernels(r);
  TESSERA_TRY(plan, plan_of(r, chosen));
  r.tools.evaluator.reset();
  TESSERA_TRY(
      reply,
      tracer.call("verify_module",
                  {{"plan", to_json(plan)}, {"seeds", 1}, {"leftover", "eager"}, {"resized", true}},
                  std::chrono::seconds(900)));
  Json row = {{"ok", reply.value("ok", false)},
              {"kernels", chosen.choice.chosen.size()},
              {"of", made.of},
              {"reason", reply.value("reason", "")}};
  if (row.at("ok") == true && made.kernels < made.of) row["reason"] = made.cut;
  if (made.kernels == 0 && row.at("ok") == true) {
    row["ok"] = nullptr;
    if (row.at("reason") == "")
      row["reason"] =
          "none of its kernels is for that size (one by hand never is): PyTorch runs it";
  }
  for (const char* key : {"max_error", "rms_error", "baseline_max_error", "baseline_rms_error"}) {
    row[key] = reply.value(key, Json());
  }
  return row;
}

// One row of the report for a size; `done` when there are no more.
Json row_for(const Session& s, bridge::Peer& tracer, const Settled& settled, const Options& options,
             int attempt, Clock::time_point deadline) {
  const auto begin = Clock::now();
  const auto asked =
      tracer.call("trace_resized", {{"attempt", attempt}}, std::chrono::seconds(900));
  if (!asked) return {{"size", ""}, {"ok", nullptr}, {"reason", asked.error().message}};
  if (asked->value("done", false)) return {{"done", true}};
  const std::string size = asked->value("size", "");
  Json row = {{"size", size}, {"ok", nullptr}, {"reason", asked->value("reason", "")}};
  if (!asked->contains("graph")) return row;
  s.say("verify", "optimized again at another size: " + size);
  auto verified = verify_at(s, tracer, settled, options, asked->at("graph"), deadline);
  if (verified) {
    row.update(*verified);
  } else {
    row["reason"] = verified.error().message;
  }
  row["seconds"] = seconds_since(begin);
  return row;
}

// What the rows depend on; the same module with the same kernels is not checked twice.
std::string key_of(const Session& s, const composer::Plan& plan) {
  std::string text = graph::to_text(s.found.graph) + s.tools.evaluation.tools.fingerprint();
  for (const composer::Step& step : plan.steps) {
    const auto* placed = std::get_if<composer::Placed>(&step);
    if (placed != nullptr) text += "\n" + kernel::wire_form(placed->winner).dump();
  }
  return text;
}

void tell_wrong(Session& s, const Json& row) {
  Diagnostic d =
      fail(resize_wrong, "optimized again at another size, the module is not right: {}",
           row.value("size", ""))
          .but_found("{}", row.value("reason", ""))
          .help("the module at the traced size is verified and right; please report this");
  d.level = Level::warning;
  s.diagnostics.push_back(std::move(d));
}

}  // namespace

Result<Json> check_resizes(Session& s, bridge::Peer& tracer, const Settled& settled,
                           const Rewritten& rewritten) {
  if (settled.chosen.choice.chosen.empty()) return Json();
  const Kept kept(s.tools.evaluation.log_folder.parent_path());
  const std::string key = key_of(s, settled.plan);
  if (auto rows = kept.find("resizes", key)) return std::move(*rows);
  const Options options = options_for(s, rewritten);
  s.tools.evaluator.reset();  // its memory is needed for the next
  const auto begin = Clock::now();
  const double seconds = seconds_for(s);
  Json rows = Json::array();
  int verified = 0;
  for (int attempt = 0; verified < wanted && !s.stopped() && tracer.alive(); ++attempt) {
    const double share = std::max(0.0, seconds - seconds_since(begin)) / (wanted - verified);
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(share));
    Json row = row_for(s, tracer, settled, options, attempt, deadline);
    if (row.contains("done")) break;
    if (row.at("ok") == true) ++verified;
    if (row.at("ok") == false) tell_wrong(s, row);
    rows.push_back(std::move(row));
    if (seconds_since(begin) > seconds) break;
  }
  if (!s.stopped()) kept.keep("resizes", key, rows);
  return rows;
}

}  // namespace tessera::pipeline
