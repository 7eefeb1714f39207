// Whether the module is right: its rewritten graph against the traced one, its kernels in their
// places, all of it end to end. What is wrong is found, dropped and reported; the rest is
// delivered.
#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "pipeline/gains.h"
#include "pipeline/stages.h"

namespace tessera::pipeline {
namespace {

inline constexpr Code module_wrong{"TS0501", "verify.module_wrong"};
inline constexpr Code rewrite_wrong{"TS0504", "verify.rewrite_wrong"};
inline constexpr Code not_checked{"TS0505", "verify.not_checked"};
inline constexpr Code kernel_wrong{"TS0506", "verify.kernel_wrong"};
inline constexpr Code compiler_wrong{"TS0507", "verify.compiler_wrong"};

constexpr std::chrono::seconds limit{900};  // for one check
constexpr int most_rounds = 16;  // of dropping kernels; each drops one of every work at fault

void warn(Session& s, Diagnostic d) {
  d.level = Level::warning;
  s.diagnostics.push_back(std::move(d));
}

bool is_wrong(const Json& reply) {
  return reply.contains("ok") && reply.at("ok") == false;
}

/// Says what a check could not do in full. `what`: "the rewritten graph".
void tell_unchecked(Session& s, const std::string& what, const Json& reply) {
  const std::string form = reply.value("form", "");
  if (form == "fp64" && reply.contains("ok") && !reply.at("ok").is_null()) return;
  warn(s, fail(not_checked, "{} was {}", what,
               reply.at("ok").is_null() ? "not checked" : "checked in a cheaper form, " + form)
              .but_found("{}", reply.value("reason", ""))
              .help("with more free memory, or at a smaller size, it is checked in fp64")
              .with("check", reply));
}

/// Ops that know no fp64, as custom ops often do.
void tell_in_own_types(Session& s, const Json& reply) {
  const Json ops = reply.value("in_own_types", Json::array());
  if (ops.empty()) return;
  warn(
      s,
      fail(not_checked, "the module was checked with ops that do not know fp64 in their own types")
          .but_found("{}", fmt::join(ops.get<std::vector<std::string>>(), ", "))
          .help(
              "nothing has to be done: the ops stay PyTorch's, and all others were checked in fp64")
          .with("check", reply));
}

// --- rewrites ------------------------------------------------------------------------------------

/// What the tracer says of the traced graph under other families of rewrites.
class Rewriting {
 public:
  Rewriting(bridge::Peer& tracer, const Json& traced) : tracer_(tracer), traced_(traced) {}

  /// Graphs that were seen before are not checked again: most families do nothing in most modules.
  Result<bool> right_without(const std::set<std::string>& off) {
    TESSERA_TRY(g, graph::import_graph(traced_));
    rewrite::canonicalize(g, off);
    const Json graph = graph::to_json(g);
    const auto [known, fresh] = seen_.try_emplace(graph.dump(), false);
    if (!fresh) return known->second;
    TESSERA_TRY(reply, tracer_.call("check_rewrites", {{"graph", graph}}, limit));
    known->second = !is_wrong(reply);
    return known->second;
  }

 private:
  bridge::Peer& tracer_;
  const Json& traced_;
  std::map<std::string, bool> seen_;
};

/// A smallest set of families without which the graph is right: all are switched off, then each is
/// switched on again unless the graph is wrong with it.
Result<std::set<std::string>> families_to_blame(Rewriting& rewriting, const Json& found) {
  const std::vector<std::string> all = rewrite::families();
  std::set<std::string> off(all.begin(), all.end());
  TESSERA_TRY(plain, rewriting.right_without(off));
  if (!plain) {
    return error(
        fail(module_wrong, "the graph is wrong without any rewrite")
            .but_found("{}", found.value("reason", "no reason given"))
            .help("this is a fault of tessera: please report the module; it runs as it is, without "
                  "tessera")
            .with("check", found));
  }
  for (const std::string& family : all) {
    std::set<std::string> fewer = off;
    fewer.erase(family);
    TESSERA_TRY(right, rewriting.right_without(fewer));
    if (right) off = std::move(fewer);
  }
  return off;
}

}  // namespace

Result<Rewritten> check_rewrites(Session& s, bridge::Peer& tracer, const Json& traced,
                                 Discovered found) {
  s.say("verify", "the rewritten graph against the traced one");
  Rewritten out{.found = std::move(found)};
  const auto ask = [&] {
    return tracer.call("check_rewrites", {{"graph", graph::to_json(out.found.graph)}}, limit);
  };
  TESSERA_TRY(first, ask());
  out.check = first;
  if (!is_wrong(first)) {
    tell_unchecked(s, "the rewritten graph", first);
    tell_in_own_types(s, first);
    return out;
  }
  Rewriting rewriting(tracer, traced);
  TESSERA_TRY(off, families_to_blame(rewriting, first));
  Options options = s.options;
  options.rewrites_off = off;
  TESSERA_TRY(again, discover(traced, options));
  out.found = std::move(again);
  out.off = off;
  warn(s, fail(rewrite_wrong, "rewrites are wrong on this module and are not made: {}",
               join({off.begin(), off.end()}, ", "))
              .but_found("{}", first.value("reason", ""))
              .help("what is delivered does without them; please report the module")
              .with("families", off)
              .with("check", first));
  TESSERA_TRY(now, ask());  // so that the tracer knows this graph
  out.check = std::move(now);
  return out;
}

// --- kernels -------------------------------------------------------------------------------------

namespace {

Work* work_of(Session& s, const std::string& pattern) {
  for (Work& w : s.work) {
    if (std::any_of(w.patterns.begin(), w.patterns.end(),
                    [&](int i) { return s.pattern(i).id == pattern; }))
      return &w;
  }
  return nullptr;
}

Diagnostic about_kernel(const Json& culprit, const std::string& next) {
  const std::string check = culprit.value("check", "");
  const std::string_view how = check == "in_place"     ? "on the inputs that it gets there"
                               : check == "end_to_end" ? "end to end"
                               : check == "active"     ? "because it cannot be loaded"
                                                       : "once, and not again";
  return fail(kernel_wrong, "{} {}: the kernel {} is wrong in the module {}, and dropped",
              culprit.value("pattern", ""), culprit.value("rule", ""), culprit.value("label", ""),
              how)
      .but_found("{}", culprit.value("reason", ""))
      .note("{}", next)
      .help("the rest is delivered; please report the case")
      .with("culprit", culprit);
}

/// Drops the kernel that is placed for the work, with all its launches. What was wrong, and not
/// only missing or suspected, is marked in the registry.
Status drop(Session& s, Work& w, const Json& culprit) {
  const std::string label = placeable(s, w)->candidate.label();
  const std::string reason = culprit.value("reason", "");
  const std::string check = culprit.value("check", "");
  if (check == "in_place" || check == "end_to_end")
    TESSERA_CHECK(mark_wrong(s, w, label, "in a module: " + reason));
  std::erase_if(w.tuned->winners,
                [&](const kernel::Winner& winner) { return winner.candidate.label() == label; });
  const kernel::Winner* next = placeable(s, w);
  if (next == nullptr) w.skipped = "its kernel was wrong in the module: " + reason;
  warn(s, about_kernel(culprit, next != nullptr ? next->candidate.label() + " takes its place"
                                                : "its ops are left to PyTorch"));
  s.say("verify", fmt::format("{}: {} is wrong in the module and dropped: {}",
                              culprit.value("pattern", ""), label, reason));
  return {};
}

/// One kernel of each work that a culprit names; false when there is none to drop.
Result<bool> drop_culprits(Session& s, const Json& culprits) {
  std::set<const Work*> done;
  for (const Json& culprit : culprits) {
    Work* w = work_of(s, culprit.value("pattern", ""));
    if (w == nullptr || placeable(s, *w) == nullptr || !done.insert(w).second) continue;
    TESSERA_CHECK(drop(s, *w, culprit));
  }
  return !done.empty();
}

/// What a compiler made of the ops that no kernel covers is wrong: it is not asked again. False
/// when no culprit says so.
bool drop_compiler(Session& s, const std::string& compiler, const Json& culprits) {
  const auto at = std::find_if(culprits.begin(), culprits.end(), [](const Json& culprit) {
    return culprit.value("check", "") == "leftover";
  });
  if (at == culprits.end()) return false;
  warn(s, fail(compiler_wrong,
               "what {} makes of the ops without a kernel is wrong: they run eagerly", compiler)
              .but_found("{}", at->value("reason", ""))
              .help("torch.compile alone may be wrong too: compare it with the module itself")
              .with("culprit", *at));
  return true;
}

/// Drops what is wrong and settles anew without it; nothing when there is nothing to drop.
Result<std::optional<Settled>> mend(Session& s, bridge::Peer& tracer, const composer::Plan& wrong,
                                    const Json& culprits, Compilers& compilers) {
  // Without the compiler the same kernels take another time and other memory, so which way the
  // module runs is decided anew for it as well.
  if (drop_compiler(s, wrong.leftover_runner, culprits)) {
    compilers.wrong = true;
  } else {
    TESSERA_TRY(fewer, drop_culprits(s, culprits));
    if (!fewer) return std::optional<Settled>();
  }
  TESSERA_TRY(chosen, compose(s));
  TESSERA_TRY(settled, settle_plan(s, tracer, std::move(chosen), compilers));
  return std::optional<Settled>(std::move(settled));
}

void tell_unchecked_kernels(Session& s, const Json& check) {
  for (const Json& row : check.value("kernels", Json::array())) {
    tell_unchecked(s,
                   fmt::format("the kernel {} of {}, in its place,", row.value("label", ""),
                               row.value("pattern", "")),
                   row);
  }
  if (const std::string form = check.value("form", "fp64"); form != "fp64") {
    Json reply = {{"ok", true}, {"form", form}, {"reason", "fp64 does not fit into memory"}};
    tell_unchecked(s, "the module, end to end,", reply);
  }
}

/// Nothing of ours is in the module.
Json run_by_torch(const Rewritten& rewritten) {
  return {{"ok", true},
          {"reason", ""},
          {"form", "none: PyTorch runs the module"},
          {"rewrites", rewritten.check}};
}

/// The tracer's word on the plan.
Result<Json> verify(const Session& s, bridge::Peer& tracer, const composer::Plan& plan) {
  s.say("verify", "the module's kernels in their places, and all of it end to end");
  return tracer.call("verify_module",
                     {{"plan", to_json(plan)}, {"seeds", 2}, {"leftover", plan.leftover_runner}},
                     limit);
}

}  // namespace

Result<Checked> check_module(Session& s, bridge::Peer& tracer, Settled settled,
                             const Rewritten& rewritten, Compilers compilers) {
  s.tools.evaluator.reset();  // the check needs its memory
  Checked out{.settled = std::move(settled)};
  Verification& told = out.verification;
  told.rewrites_off = rewritten.off;
  for (int round = 0;; ++round) {
    if (!out.settled.plan.runs_kernels()) {
      told.reply = run_by_torch(rewritten);
      break;
    }
    TESSERA_TRY(reply, verify(s, tracer, out.settled.plan));
    told.reply = std::move(reply);
    if (told.reply.value("ok", false)) break;
    const Json culprits = told.reply.value("culprits", Json::array());
    std::optional<Settled> mended;
    if (round < most_rounds) {
      TESSERA_TRY(again, mend(s, tracer, out.settled.plan, culprits, compilers));
      mended = std::move(again);
    }
    if (!mended) {
      return error(
          fail(module_wrong, "the composed module does not compute what the original does")
              .but_found("{}", told.reply.value("reason", "no reason given"))
              .help("optimize again with --use-registry=false to rule out a stale kernel, or with "
                    "--only library; please report the case")
              .with("check", told.reply));
    }
    out.settled = std::move(*mended);
    told.dropped.insert(told.dropped.end(), culprits.begin(), culprits.end());
  }
  if (told.reply.contains("kernels")) tell_unchecked_kernels(s, told.reply);
  return out;
}

}  // namespace tessera::pipeline
