// The whole journey on the host: real compilers, the real evaluator process, kernels right and
// wrong.
#include "evaluate/evaluate.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "evaluate/journey.h"
#include "graph/graph.h"

namespace tessera::evaluate {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using tune::Outcome;

// y = relu(x + 1) on 64 x 32, as a graph.
const char* const graph_text =
    R"({"schema": "tessera.graph/1", "name": "test", "device": "cpu", "precision": "fp32",
 "values": [{"name": "x", "dtype": "float32", "shape": [64, 32], "strides": [32, 1], "origin": "user_input"},
            {"name": "add", "dtype": "float32", "shape": [64, 32], "strides": [32, 1], "origin": "node"},
            {"name": "relu", "dtype": "float32", "shape": [64, 32], "strides": [32, 1], "origin": "node"}],
 "inputs": ["x"],
 "nodes": [{"name": "add", "op": "aten.add.Tensor", "outputs": ["add"],
            "arguments": {"self": {"value": "x"}, "other": 1.0, "alpha": 1}},
           {"name": "relu", "op": "aten.relu.default", "outputs": ["relu"], "arguments": {"self": {"value": "add"}}}],
 "outputs": ["relu"]})";

const char* const kernel_text = R"(
#include <cmath>
#include <unistd.h>
#include "tessera/kernel.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT const char* tessera_describe(void) { return R"j({"abi":1,"name":"t","ints":["work"],"arch":"host"})j"; }
EXPORT int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
EXPORT const char* tessera_last_error(void) { return "refused"; }
EXPORT int tessera_run(const tessera_launch* l, void*, void*) {
  const float* x = (const float*)l->tensors[0];
  float* y = (float*)l->tensors[1];
  for (long pass = 0; pass < l->ints[0]; ++pass)
    for (int i = 0; i < 64 * 32; ++i) { float v = x[i] + 1.0f; y[i] = v < 0 ? 0 : v; asm volatile("" ::: "memory"); }
  FAULT;
  return 0;
}
)";

kernel::Candidate kernel(const std::string& name, const std::string& fault,
                         std::vector<int64_t> works) {
  kernel::Candidate c;
  c.realizer = "test";
  c.config = {{"schedule", name}};
  c.source = toolchain::Source{.name = name,
                               .language = toolchain::Language::cxx,
                               .text = kernel_text,
                               .arch = "host",
                               .flags = {"-DFAULT=" + fault},
                               .links = {}};
  for (const int64_t w : works) c.launches.push_back({.knobs = {{"work", w}}, .ints = {w}});
  return c;
}

kernel::Candidate aten() {
  kernel::Candidate c;
  c.realizer = "library_aten";
  c.kind = kernel::Kind::library;
  c.call = kernel::LibraryCall{.function = "aten"};
  return c;
}

class Evaluating : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TESSERA_PYTHONPATH", (fs::path(source_folder()) / "python").c_str(), 1);
    auto imported = graph::import_graph(parse_json(graph_text));
    ASSERT_TRUE(imported) << to_text(imported.error());
    g = std::move(*imported);
    pattern.id = "p01";
    pattern.rule = "pointwise";
    pattern.nodes = g.order;
    pattern.inputs = g.inputs;
    pattern.outputs = g.outputs;
    pattern.min_bytes = 2 * 64 * 32 * 4;
    options.python = bridge::find_python();
    options.tools = toolchain::locate(options.python);
    options.tools.own_include = fs::path(source_folder()) / "include";
    options.cache = folder.path() / "cache";
    options.log_folder = folder.path() / "log";
    options.parallel_builds = 2;
    options.measure_limit = std::chrono::seconds(20);
  }

  Tuned tuned(const std::vector<kernel::Candidate>& candidates, const Json& known = Json::array()) {
    Evaluator e(options, g, **arch::find("host"));
    const std::atomic<bool> stop = false;
    auto r = e.tune(pattern, candidates, known, 0, stop, [this](const Json& p) {
      if (p.at("stage") == "trial") recorded.push_back(p.at("trial"));
    });
    EXPECT_TRUE(r) << to_text(r.error());
    return r ? *r : Tuned{};
  }

  TemporaryFolder folder;
  graph::Graph g;
  rules::Pattern pattern;
  Options options;
  Json recorded = Json::array();
};

Outcome outcome_of(const Tuned& t, int candidate) {
  for (const tune::Trial& trial : t.trials) {
    if (trial.point.candidate == candidate) return trial.outcome;
  }
  return Outcome::skipped;
}

std::string reason_of(const Tuned& t, int candidate) {
  for (const tune::Trial& trial : t.trials) {
    if (trial.point.candidate == candidate) return trial.reason;
  }
  return "";
}

// The fastest winner of our own kernels; whether it beats eager on so little work is not what is
// tested.
const kernel::Winner* best_kernel(const Tuned& t) {
  for (const kernel::Winner& w : t.winners) {
    if (w.candidate.realizer == "test") return &w;
  }
  return nullptr;
}

bool has_library(const Tuned& t) {
  return std::any_of(t.winners.begin(), t.winners.end(),
                     [](const auto& w) { return w.candidate.kind == kernel::Kind::library; });
}

TEST_F(Evaluating, FindsTheBestAndNamesEveryFailure) {
  options.measure_limit = std::chrono::seconds(8);
  const Tuned t =
      tuned({kernel("good", "(void)0", {400, 1, 40}), kernel("broken", "this is no C++", {1}),
             kernel("wrong", "y[7]+=1", {1}), kernel("crash", "*(volatile int*)0=1", {1}),
             kernel("hang", "for(;;)sleep(1)", {1}), kernel("refuse", "return 1", {1}), aten()});
  ASSERT_NE(best_kernel(t), nullptr);
  const kernel::Winner& best = *best_kernel(t);
  EXPECT_EQ(best.candidate.config.at("schedule"), "good");
  EXPECT_EQ(best.launch, 1);
  ASSERT_TRUE(best.built);
  EXPECT_GT(best.evidence.ms, 0);
  EXPECT_LT(best.evidence.rms_error, 1e-6);
  EXPECT_GT(t.eager_ms, 0);
  EXPECT_TRUE(has_library(t));
  EXPECT_EQ(outcome_of(t, 1), Outcome::build_failed);
  EXPECT_EQ(outcome_of(t, 2), Outcome::wrong_result) << reason_of(t, 2);
  EXPECT_EQ(outcome_of(t, 3), Outcome::crashed);
  EXPECT_THAT(reason_of(t, 3), HasSubstr("signal 11"));
  EXPECT_EQ(outcome_of(t, 4), Outcome::timed_out) << reason_of(t, 4);
  EXPECT_EQ(outcome_of(t, 5), Outcome::unsupported);
  const Json j = t.to_json();
  EXPECT_EQ(j.at("schema"), "tessera.tuned/1");

  // What was recorded is enough to not do it again: the kernels that failed are not tried, the best
  // is the same.
  const Json first = recorded;
  const auto begin = std::chrono::steady_clock::now();
  const Tuned again = tuned(
      {kernel("hang", "for(;;)sleep(1)", {1}), kernel("good", "(void)0", {400, 1, 40}), aten()},
      first);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  ASSERT_NE(best_kernel(again), nullptr);
  EXPECT_EQ(best_kernel(again)->candidate.config.at("schedule"), "good");
  EXPECT_EQ(best_kernel(again)->launch, 1);
}

TEST_F(Evaluating, ReviveBuildsAndVerifies) {
  Evaluator e(options, g, **arch::find("host"));
  const auto good = e.revive(pattern, kernel("good", "(void)0", {1}), 0, true);
  ASSERT_TRUE(good) << to_text(good.error());
  EXPECT_FALSE(good->built->cached);
  const auto cached = e.revive(pattern, kernel("good", "(void)0", {1}), 0, false);
  ASSERT_TRUE(cached);
  EXPECT_TRUE(cached->built->cached);
  const auto wrong = e.revive(pattern, kernel("wrong", "y[7]+=1", {1}), 0, true);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, "TS0520");
}

TEST_F(Evaluating, AtAnyStepTheBestSoFarIsWhole) {
  Evaluator e(options, g, **arch::find("host"));
  const std::atomic<bool> stop = false;
  auto begun = e.begin(pattern, {kernel("good", "(void)0", {1}), aten()}, Json::array(), stop, {});
  ASSERT_TRUE(begun) << to_text(begun.error());
  Journey& j = **begun;
  ASSERT_TRUE(j.open());
  EXPECT_TRUE(j.so_far(true).winners.empty());
  EXPECT_EQ(j.settle_seconds(), 0);

  auto step = j.next(0, 0);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->round, tune::Round::free);
  j.advance(*step, 0);
  EXPECT_GT(j.eager_ms(), 0);
  EXPECT_EQ(j.best_ms(), 0);  // the ops themselves are no gain
  EXPECT_TRUE(has_library(j.so_far(true)));

  step = j.next(0, 0);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->round, tune::Round::quick);
  j.advance(*step, 0);
  EXPECT_GT(j.best_ms(), 0);
  EXPECT_NE(best_kernel(j.so_far(false)), nullptr);
  EXPECT_EQ(best_kernel(j.so_far(true)), nullptr);  // not verified in full yet
  EXPECT_TRUE(j.finals_due());
  j.finals();
  EXPECT_NE(best_kernel(j.so_far(true)), nullptr);
  const Tuned t = j.so_far(true);
  for (const char* round : {"open", "free", "quick", "finals", "verify"})
    EXPECT_GT(t.rounds.at(round), 0) << round;
  EXPECT_EQ(t.to_json().at("rounds").at("quick"), t.rounds.at("quick"));
}

TEST_F(Evaluating, SettlesOnlyWhatMayBePlaced) {
  options.only_kind = "library";
  Evaluator e(options, g, **arch::find("host"));
  const std::atomic<bool> stop = false;
  auto begun = e.begin(pattern, {kernel("good", "(void)0", {1}), aten()}, Json::array(), stop, {});
  ASSERT_TRUE(begun);
  Journey& j = **begun;
  while (const auto step = j.next(0, 0)) j.advance(*step, 0);
  EXPECT_EQ(j.settle_seconds(), 0);
  EXPECT_EQ(best_kernel(j.so_far(true)), nullptr);
  EXPECT_EQ(j.best_ms(), 0);
}

TEST_F(Evaluating, APeerIsTimedAndNeverAWinner) {
  kernel::Candidate peer = kernel("peer", "(void)0", {1});
  peer.peer = true;
  const Tuned t = tuned({kernel("slower", "(void)0", {4000}), peer, aten()});
  EXPECT_EQ(outcome_of(t, 1), Outcome::measured) << reason_of(t, 1);
  ASSERT_NE(best_kernel(t), nullptr);
  for (const kernel::Winner& w : t.winners) EXPECT_FALSE(w.candidate.peer);
  EXPECT_EQ(best_kernel(t)->candidate.config.at("schedule"), "slower");
}

TEST_F(Evaluating, StopAtOnceStillAnswers) {
  Evaluator e(options, g, **arch::find("host"));
  const std::atomic<bool> stop = true;
  const auto r = e.tune(pattern, {aten()}, Json::array(), 0, stop, {});
  ASSERT_TRUE(r) << to_text(r.error());
  EXPECT_EQ(r->stopped_because, "interrupted");
}

TEST(Wire, TrialsRoundTripByRealizerConfigAndKnobs) {
  const std::vector<kernel::Candidate> before = {kernel("a", "x", {1, 2}),
                                                 kernel("b", "x", {1, 2})};
  const tune::Trial t{.point = {1, 1}, .outcome = Outcome::measured, .ms = 2.5, .ci95 = 0.1};
  const Json j = trial_to_json(t, before);
  const std::vector<kernel::Candidate> after = {kernel("new", "x", {1}), kernel("b", "x", {1, 2})};
  const auto back = trials_from_json(Json::array({j}), after);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].point, (tune::Point{1, 1}));
  EXPECT_DOUBLE_EQ(back[0].ms, 2.5);
  EXPECT_TRUE(trials_from_json(Json::array({j}), {before[0]}).empty());
}

TEST(Offers, SlowBuildsStayWhereTheModelPromisesMoreOfThem) {
  const auto candidate = [](const char* name, bool cutlass, double ms) {
    kernel::Candidate c;
    c.realizer = name;
    c.predicted_ms = ms;
    c.source = toolchain::Source{.name = name, .cutlass = cutlass};
    return c;
  };
  Offers o;
  o.candidates = {candidate("quick", false, 1.0), candidate("slower", true, 1.2),
                  candidate("alike", true, 0.98), candidate("better", true, 0.9),
                  candidate("known", true, 1.5),  kernel::Candidate{.realizer = "library"}};
  o.candidates[4].proven = true;
  leave_out_slow_builds(o);
  std::vector<std::string> left;
  for (const kernel::Candidate& c : o.candidates) left.push_back(c.realizer);
  EXPECT_EQ(left, (std::vector<std::string>{"quick", "better", "known", "library"}));
  ASSERT_EQ(o.pruned.size(), 1u);
  EXPECT_EQ(o.pruned[0].second, 2);
  // Where nothing builds in seconds, all stay.
  Offers only;
  only.candidates = {candidate("a", true, 1.0), candidate("b", true, 2.0)};
  leave_out_slow_builds(only);
  EXPECT_EQ(only.candidates.size(), 2u);
  EXPECT_TRUE(only.pruned.empty());
}

TEST(Offers, EveryPatternHasItsAtenCandidate) {
  rules::Pattern p;
  p.rule = "no_such_rule";
  const Offers o = offers(p, graph::Graph{}, **arch::find("host"));
  ASSERT_EQ(o.candidates.size(), 1u);
  EXPECT_EQ(o.candidates[0].realizer, "library_aten");
}

}  // namespace
}  // namespace tessera::evaluate
