// The stages of `optimize`, and the values that they hand to one another.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compose/choose.h"
#include "compose/plan.h"
#include "evaluate/evaluate.h"
#include "pipeline/pipeline.h"
#include "registry/registry.h"

#include "kernel/winner.h"

namespace tessera::pipeline {

/// One distinct signature: its occurrences share everything but their place.
struct Work {
  std::vector<int> patterns;  // indices into the discovery; the first is the one that is evaluated
  registry::Key key;
  rules::Reuse reuse = rules::Reuse::fresh;
  std::string reuse_detail;
  std::optional<registry::Entry> entry;        // of reuse or adapt
  std::optional<registry::Entry> own;          // of the same key and toolchain
  std::optional<registry::Standing> standing;  // of `own`
  std::optional<registry::Entry> imported;     // of the same key and toolchain, not tried yet
  std::optional<evaluate::Tuned> tuned;
  std::string skipped;      // why it was not evaluated
  bool refined = false;     // its winners' order was settled in the module's own run
  bool reused = false;      // as the registry had it
  bool beside_own = false;  // the best of `own` was tried again beside what its winners are of
  std::string by_hand;      // the file that its first winner is of, where a person gave it
  bool rechecked = false;   // not searched: what the registry had was timed again
  int64_t left_out_from =
      0;  // bytes of the least scratch memory for which a candidate was left out
  /// What the realizers offer, from when it was first asked for until the search takes it.
  std::optional<evaluate::Offers> offers;
};

/// What is searched for one work.
struct Realized {
  std::size_t work = 0;
  evaluate::Offers offers;
  double seconds = 0;  // that realizing took
};

/// What the stages work with, besides the module: the compilers, the process that runs candidates,
/// the registry.
struct Tools {
  evaluate::Options evaluation;
  std::unique_ptr<evaluate::Evaluator> evaluator;
  std::unique_ptr<registry::Registry> registry;  // null when not used
  std::string device_name;
  std::string toolchain;  // its fingerprint
};

/// The graph in the form that was found right.
struct Rewritten {
  Discovered found;
  std::set<std::string> off;  // families of rewrites that are wrong on this module
  Json check = Json::object();
};

/// PyTorch's own ways to run the module.
struct Baseline {
  Json ways;  // as the tracer timed them; null where they decide nothing
  /// Bytes that a call may allocate so that the module may be handed over; none: not known.
  std::optional<int64_t> call_bytes;
  /// What ops that Inductor fuses take in PyTorch's best plan, of what they take one by one.
  double fused_share = 1;
  double rest_seconds = 0;  // that Inductor is expected to take for what a plan leaves to PyTorch
  double kept_seconds = 0;  // of the search's, for that; 0 where it would take too many of them
  double eager_ms = 0;      // of a call; 0: not known
  bool without_compiler = false;  // Inductor was given up
};

/// The kernels that may be placed, and those that are.
struct Chosen {
  struct Origin {
    std::size_t work = 0;
    int pattern = 0;  // index into the discovery
  };
  std::vector<composer::Option> options;
  std::vector<Origin> origins;  // parallel to the options
  composer::Choice choice;
};

/// A plan with those who may run the rest of it, and the options that it is made of.
struct Variant {
  std::vector<int> chosen;
  composer::Plan plan;
  std::vector<std::string> leftovers;
};

/// The module as it would be handed over after so many seconds of search.
struct Checkpoint {
  double seconds = 0;
  std::vector<Variant> variants;
  std::optional<composer::Plan> plan;  // none until it is settled, and where no way can run
  std::string why;
};

/// The compile budget of the leftover ops.
struct Compilers {
  double left_seconds = 0;  // of the search's when it ended, at least those kept for them
  bool wrong = false;       // what Inductor made of it was wrong in this module
};

/// How it was decided which way the module runs.
struct Decided {
  Json ways;  // as the tracer timed them (docs/protocol.md, `settle`); null where nothing decides
  std::string why;
  std::string measured;       // when an earlier run took these times; "" in this one
  std::optional<int> chosen;  // of the ways; none where none can run
};

/// What is handed over: the kernels that stay, and the plan of them.
struct Settled {
  Chosen chosen;
  composer::Plan plan;
  Decided decided;
};

/// Whether the module is right.
struct Verification {
  Json reply;                          // of verify_module (docs/protocol.md); null: not asked
  Json dropped = Json::array();        // culprits of earlier rounds
  std::set<std::string> rewrites_off;  // families of rewrites that were wrong
  Json resizes;                        // rows of check_resizes; null: not checked
};

/// What was settled, with what was wrong gone.
struct Checked {
  Settled settled;
  Verification verification;
};

/// A winner that was exchanged for another on the module's own clock: the module's ms with it, and
/// with the one before.
struct Refinement {
  std::string pattern;
  std::string from;
  std::string to;
  double ms = 0;
  double than = 0;
  double sustained_ms = 0;  // back to back; 0: not measured
  double than_sustained = 0;
};

/// The choice by what the winners take after the exchanges, which are in order.
struct Refined {
  Chosen chosen;
  std::vector<Refinement> exchanged;
};

/// What the report tells besides the patterns. A search without composing has none of it.
struct Results {
  std::optional<Settled> settled;
  std::vector<Refinement> refinements;
  std::vector<Checkpoint> checkpoints;
  Verification verification;
  Json times = Json::object();  // measure_module
};

/// Of no other run.
std::string name_run();

/// A run over one module: what every stage may read, its works while they are searched, and what
/// there is to say. What else a stage finds it returns.
struct Session {
  const Options& options;
  const Context& context;
  Discovered found;
  Tools tools;
  Baseline baseline;
  std::string run = name_run();  // in what it stores
  std::vector<Work> work;
  std::vector<Diagnostic> diagnostics;
  Json timings = Json::object();  // seconds a stage

  /// Told that the best of a work changed, with the seconds since the search began; may be empty.
  std::function<void(double seconds, std::size_t work)> on_improved;
  /// At each of these seconds of the search, ascending, on_checkpoint is called between two steps,
  /// with every Work::tuned as it stands then (verified quickly, timed once), so that a plan can be
  /// made of it. What it takes is not counted as search. Those after the search's end are left out.
  std::vector<double> checkpoints;
  std::function<Status(double seconds)> on_checkpoint;

  [[nodiscard]] const rules::Pattern& pattern(int i) const {
    return found.discovery.patterns[static_cast<std::size_t>(i)];
  }
  /// The work that a pattern is a place of; nullptr before there are works.
  [[nodiscard]] const Work* work_of(int pattern) const;
  [[nodiscard]] bool stopped() const { return context.stop != nullptr && context.stop->load(); }
  void say(const std::string& stage, const std::string& message, Json more = Json::object()) const;
  /// "[2/7] p03 gemm: ...": a work for people.
  [[nodiscard]] std::string place_of(std::size_t work_at) const;
};

/// The rewritten graph against the traced one. Where it is wrong, families of rewrites are switched
/// off until it is right, with a warning that names them, and patterns are found anew.
Result<Rewritten> check_rewrites(Session& s, bridge::Peer& tracer, const Json& traced,
                                 Discovered found);
/// Error TS0025: kernels of this architecture cannot run where the module lies.
Status check_device(const graph::Graph& g, const arch::Arch& a);
/// The registry's file: the user's own unless the options name one.
std::filesystem::path registry_file(const Options& options);
/// Python, compilers, evaluator, registry. `every_candidate`: as of evaluate::Options.
Result<Tools> open_tools(Session& s, bool every_candidate = false);
/// Distinct signatures, by priority.
std::vector<Work> group_by_signature(const Session& s);
Status look_up(Session& s);  // REUSE / ADAPT / NEW
/// Once more when it is known how much memory kernels may take: an earlier search may have left out
/// what may be used now.
Status look_up_within_memory(Session& s);
/// Takes what the registry has of a work, if it is a verdict. Kernels that cannot be had again are
/// tuned. What was imported, and library kernels of other versions, are built, verified and timed
/// here first.
void reuse(Session& s);
/// The candidates of a work, which are made once.
const evaluate::Offers& offers_of(const Session& s, Work& w);
/// After the search: a work that it did not get to, or not to what an earlier search had found,
/// keeps that.
void keep_what_was_found(Session& s);
/// The process that takes times begins to start while PyTorch's own ways are prepared, where
/// anything is to be searched.
Status wake_evaluator(Session& s);
Status check_builders(const Session& s);  // compilers and headers, where something is to be built
/// PyTorch's own ways to run the module: compiled, and timed before anything is searched. While
/// they are compiled, so are the kernels that the search would ask for first (builds_ahead.h).
Result<Baseline> prepare_baseline(Session& s, bridge::Peer& tracer);
/// Asks the realizers for the candidates of every work that has neither winners nor a reason to be
/// passed over, with their sources emitted. Without any where the run was stopped.
std::vector<Realized> realize(Session& s);
/// All searches take turns: compilers build the candidates, the gates verify and time them, and
/// what was learned is stored. A search that began at `begin` may take the run's seconds. Those
/// that are left of it, at least those kept for compilers.
Result<double> search(Session& s, std::vector<Realized> realized,
                      std::chrono::steady_clock::time_point begin);
/// Of the winners so far.
Chosen choose_kernels(const Session& s);
/// The same, told to the user.
Result<Chosen> compose(const Session& s);
/// The plan of what is chosen with the winners as they stand.
Result<composer::Plan> plan_of(const Session& s, const Chosen& chosen,
                               const std::string& leftover_runner = "eager");
/// Runner-ups that were nearly as fast by themselves, tried in the module's own run: where caches
/// and power are shared with its other kernels another may be the fastest. What wins stands first
/// among its work's winners and is stored.
Result<Refined> refine_plan(Session& s, bridge::Peer& tracer, Chosen chosen);
/// Decides by the module's own times whether the chosen kernels are handed over, and who runs the
/// rest; else the plan has none and PyTorch runs the module.
Result<Settled> settle_plan(Session& s, bridge::Peer& tracer, Chosen chosen,
                            const Compilers& compilers);
/// The plans of the winners as they stand.
Result<Checkpoint> note_checkpoint(const Session& s, double seconds);
/// Decides as settle_plan does, when no compiler runs. `chosen`: of the whole search; what of it
/// was left out says why where PyTorch runs the module.
Result<std::vector<Checkpoint>> settle_checkpoints(const Session& s, bridge::Peer& tracer,
                                                   const Chosen& chosen,
                                                   std::vector<Checkpoint> noted);
/// The plan's kernels in their places, and the module end to end. A kernel that is wrong goes from
/// its work with a warning, is marked in the registry, and the plan is made again: TS0501 only when
/// nothing is left to drop.
Result<Checked> check_module(Session& s, bridge::Peer& tracer, Settled settled,
                             const Rewritten& rewritten, Compilers compilers);
Result<Json> measure_module(const Session& s, bridge::Peer& tracer, const composer::Plan& plan);
/// Rows {"size","ok","reason","kernels","of",errors}; `ok` is null where the module does not take
/// the size. Only a wrong answer is a diagnostic, and a warning. Null where no kernel is placed.
Result<Json> check_resizes(Session& s, bridge::Peer& tracer, const Settled& settled,
                           const Rewritten& rewritten);

/// Bytes of scratch memory that a kernel of this work may take; none: any.
std::optional<int64_t> workspace_limit(const Session& s, const Work& w);
/// Whether it decides at all: benchmarks of kernels ask what those take, wherever PyTorch is
/// faster.
bool settles(const Session& s);
/// Stores the winners of a search, or that it had none, and how thorough it was.
Status remember(Session& s, const Work& w);
/// The trials of earlier searches for a work, as `known` of Evaluator::tune takes them: those that
/// say something about this run. None under options.retune, but what was wrong in a module is never
/// tried again.
Result<Json> known_trials(const Session& s, const Work& w,
                          const std::vector<kernel::Candidate>& candidates);
/// Keeps a trial (evaluate::trial_to_json). Losing one only costs its repetition.
void note_trial(Session& s, Work& w, const Json& trial);
/// A winner (by its candidate's label) that was wrong in the module: the registry does not give it
/// again, and no search takes it. It is among the work's winners still.
Status mark_wrong(Session& s, const Work& w, const std::string& label, const std::string& reason);
/// The effort, and of the run's seconds the share that the time of its ops one by one has in that
/// of all works. Not what the search will spend on it: what its entry is held against, which must
/// be the same in every run of the module with these options.
registry::Asked asked_of(const Session& s, const Work& w);
/// What this run holds entries against.
registry::Here here_of(const Session& s, const Work& w);
/// The candidate of `offers` that has this realizer and configuration; nullptr when no realizer
/// offers it any more.
const kernel::Candidate* offered(const std::vector<kernel::Candidate>& offers,
                                 const std::string& realizer, const Json& config);
/// A winner of our own entry as it was stored; where that cannot be relied on, its realizer makes
/// it again. Error `bad_candidate`: none offers it any more.
Result<kernel::Candidate> own_candidate(const Session& s, Work& w, const kernel::Winner& stored);
/// The winner that may be placed under options.only_kind; nullptr when there is none.
const kernel::Winner* placeable(const Session& s, const Work& w);
}  // namespace tessera::pipeline
