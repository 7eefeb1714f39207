// The search of a small module on the host: real compilers, the real evaluator process.
#include <gmock/gmock.h>

#include "pipeline/stages.h"
#include "pipeline/testing/on_host.h"

namespace tessera::pipeline {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

// y = relu(x + 1) on 64 x 32.
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

/// As the pipeline does it.
Result<double> evaluate_work(Session& s) {
  reuse(s);
  const auto begin = std::chrono::steady_clock::now();
  return search(s, realize(s), begin);
}

class Searching : public testing::OnHost {
 protected:
  void SetUp() override { open(graph_text); }
};

TEST_F(Searching, EveryPatternHasItsWinnersAndWhatItTookIsTold) {
  std::vector<double> improved;
  s.on_improved = [&](double seconds, std::size_t) { improved.push_back(seconds); };
  s.checkpoints = {0.001, 1e9};
  int taken = 0;
  std::size_t first_winners = 0;
  s.on_checkpoint = [&](double at) {
    EXPECT_DOUBLE_EQ(at, 0.001);
    ++taken;
    for (const Work& w : s.work) first_winners += w.tuned ? w.tuned->winners.size() : 0;
    return Status{};
  };
  std::string told;
  context.progress = [&](const Json& event) { told += event.value("message", "") + "\n"; };
  const auto done = evaluate_work(s);
  ASSERT_TRUE(done) << to_text(done.error());
  EXPECT_THAT(told, HasSubstr("free 1\n"));  // not "best 0 ms": nothing was measured yet
  EXPECT_THAT(told, HasSubstr(", best "));
  EXPECT_THAT(told, Not(HasSubstr(" 0 ms")));
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(first_winners, 0u);  // nothing was measured by then
  EXPECT_FALSE(improved.empty());
  EXPECT_TRUE(std::is_sorted(improved.begin(), improved.end()));
  for (const Work& w : s.work) {
    ASSERT_TRUE(w.tuned) << w.skipped;
    EXPECT_FALSE(w.tuned->cut) << w.tuned->stopped_because;
    EXPECT_FALSE(w.tuned->winners.empty());
    EXPECT_GT(w.tuned->eager_ms, 0);
    for (const char* round : {"open", "free", "finals"}) EXPECT_GT(w.tuned->rounds.at(round), 0);
  }
  EXPECT_TRUE(std::any_of(s.work.begin(), s.work.end(),
                          [](const Work& w) { return w.tuned->rounds.contains("quick"); }));
}

TEST_F(Searching, APatternIsRealizedOnce) {
  Work& w = s.work.front();
  const kernel::Candidate* first = offers_of(s, w).candidates.data();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(offers_of(s, w).candidates.data(), first);
  const std::vector<Realized> realized = realize(s);
  ASSERT_EQ(realized.size(), s.work.size());
  EXPECT_EQ(realized.front().offers.candidates.data(), first);  // the search takes them
  EXPECT_FALSE(w.offers);
}

// As on a GPU: what is built beside the clock is measured when it is ready.
TEST_F(Searching, CompilersRunAhead) {
  beside_the_clock(true);
  ASSERT_TRUE(evaluate_work(s));
  for (const Work& w : s.work) {
    ASSERT_TRUE(w.tuned) << w.skipped;
    EXPECT_FALSE(w.tuned->cut);
  }
  EXPECT_TRUE(std::any_of(s.work.begin(), s.work.end(), [](const Work& w) {
    return std::any_of(w.tuned->winners.begin(), w.tuned->winners.end(),
                       [](const auto& winner) { return winner.built.has_value(); });
  }));
}

TEST_F(Searching, ACheckpointHasTheBestSoFarAndTheSearchGoesOn) {
  s.on_improved = [&](double seconds, std::size_t) {
    if (s.checkpoints.empty()) s.checkpoints = {seconds};
  };
  std::size_t winners = 0;
  s.on_checkpoint = [&](double) {
    for (const Work& w : s.work) winners += w.tuned ? w.tuned->winners.size() : 0;
    return plan_of(s, choose_kernels(s)) ? Status{}
                                         : Status(error(fail(Code{"TS0001", "t"}, "no plan")));
  };
  ASSERT_TRUE(evaluate_work(s));
  EXPECT_GT(winners, 0u);
  EXPECT_TRUE(s.diagnostics.empty());
  for (const Work& w : s.work) EXPECT_FALSE(w.tuned->cut);
}

const char* const by_hand_text = R"(
#include "tessera/kernel.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT const char* tessera_describe(void) {
  return R"j({"abi":1,"name":"t","ints":[],"arch":"host"})j";
}
EXPORT int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
EXPORT const char* tessera_last_error(void) { return "refused"; }
EXPORT int tessera_run(const tessera_launch* l, void*, void*) {
  const float* x = (const float*)l->tensors[0];
  float* y = (float*)l->tensors[1];
  for (int i = 0; i < 64 * 32; ++i) y[i] = x[i] + 1.0f < 0 ? 0 : x[i] + 1.0f;
  return 0;
}
)";

/// A kernel by hand for the whole graph, which no realizer offers, stored with a figure of a moment
/// when everything took a second; the search behind it is not enough.
class ByHandStored : public Searching {
 protected:
  static constexpr double of_that_moment = 1000;
  std::size_t at = 0;

  [[nodiscard]] static bool is_by_hand(const kernel::Candidate& c) {
    return c.realizer == "by_hand";
  }
  [[nodiscard]] Work& work() { return s.work[at]; }
  void SetUp() override {
    Searching::SetUp();
    while (s.pattern(s.work[at].patterns.front()).nodes.size() != 2) ++at;
    kernel::Candidate c{.realizer = "by_hand", .config = {{"source", "k.cpp"}}};
    c.source = toolchain::Source{.name = "by_hand",
                                 .language = toolchain::Language::cxx,
                                 .text = by_hand_text,
                                 .arch = "host"};
    c.launches = {kernel::Launch{}};
    evaluate::Tuned t;
    t.winners.push_back({.candidate = c, .built = {}, .evidence = {}});
    t.winners.front().evidence.ms = of_that_moment;
    t.eager_ms = 2 * of_that_moment;
    work().tuned = std::move(t);
    work().by_hand = "k.cpp";
    work().rechecked = true;
    ASSERT_TRUE(remember(s, work()));
    work().tuned.reset();
    work().by_hand.clear();
    work().rechecked = false;
    s.run = name_run();
    ASSERT_TRUE(look_up(s));
    ASSERT_EQ(work().standing, registry::Standing::shallow);
  }
  void expect_timed_now() {
    ASSERT_TRUE(work().tuned) << work().skipped;
    const auto& winners = work().tuned->winners;
    const auto it = std::find_if(winners.begin(), winners.end(),
                                 [](const auto& w) { return is_by_hand(w.candidate); });
    ASSERT_NE(it, winners.end());
    EXPECT_LT(it->evidence.ms, of_that_moment);
    EXPECT_LT(work().tuned->eager_ms, of_that_moment);
    ASSERT_TRUE(look_up(s));
    for (const auto& w : work().own->winners) EXPECT_LT(w.evidence.ms, of_that_moment);
  }
};

TEST_F(ByHandStored, ASearchTimesItBesideItsOwn) {
  ASSERT_TRUE(evaluate_work(s));
  EXPECT_TRUE(work().beside_own);
  expect_timed_now();
}

TEST_F(ByHandStored, WhatASearchDidNotComeToIsTimedBesideWhatItFound) {
  std::vector<Realized> realized = realize(s);
  for (Realized& r : realized) {
    const bool there = std::erase_if(r.offers.candidates, is_by_hand) > 0;
    EXPECT_EQ(there, r.work == at);
  }
  ASSERT_TRUE(search(s, std::move(realized), std::chrono::steady_clock::now()));
  expect_timed_now();
}

TEST_F(ByHandStored, AStopLeavesItFirst) {
  const kernel::Candidate stored = work().own->winners.front().candidate;
  ASSERT_TRUE(s.tools.evaluator->revive(s.pattern(work().patterns.front()), stored, 0, false));
  std::vector<Realized> realized = realize(s);
  std::erase_if(realized, [&](const Realized& r) { return r.work != at; });
  std::erase_if(realized.front().offers.candidates, is_by_hand);
  s.on_improved = [&](double, std::size_t) { stop = true; };
  ASSERT_TRUE(search(s, std::move(realized), std::chrono::steady_clock::now()));
  ASSERT_TRUE(work().tuned) << work().skipped;
  EXPECT_TRUE(is_by_hand(work().tuned->winners.front().candidate));
  EXPECT_GT(work().tuned->winners.size(), 1U);
  EXPECT_EQ(work().tuned->eager_ms, 2 * of_that_moment);
}

/// Winners as a release left them whose realizer and headers are gone.
class Remembered : public Searching {
 protected:
  void remember_gone(const std::string& toolchain, int64_t left_out_from = 0) {
    kernel::Candidate gone{.realizer = "gone_kernel", .config = {{"tile", {64}}}};
    gone.source = toolchain::Source{.name = "gone_kernel",
                                    .language = toolchain::Language::cxx,
                                    .text = "#include \"gone/kernel.h\"\n",
                                    .arch = "host"};
    gone.launches = {{.knobs = Json::object(), .ints = {1}}};
    const std::string here = s.tools.toolchain;
    s.tools.toolchain = toolchain;
    for (Work& w : s.work) {
      evaluate::Tuned t;
      t.winners.push_back({.candidate = gone, .built = {}, .evidence = {}});
      t.winners.front().evidence.ms = 1e-6;
      t.eager_ms = 1;
      t.candidates = {{gone.label(), gone.kind}};
      t.trials = {{.point = {0, 0}, .outcome = tune::Outcome::measured, .ms = 1e-6}};
      t.stopped_because = "space exhausted";
      w.tuned = std::move(t);
      w.left_out_from = left_out_from;
      ASSERT_TRUE(remember(s, w));
      w.tuned.reset();
    }
    s.tools.toolchain = here;
    ASSERT_TRUE(look_up(s));
  }

  void expect_searched() {
    ASSERT_TRUE(evaluate_work(s));
    for (const Work& w : s.work) {
      ASSERT_TRUE(w.tuned) << w.skipped;
      EXPECT_FALSE(w.reused);
      EXPECT_FALSE(w.tuned->winners.empty());
      for (const auto& winner : w.tuned->winners)
        EXPECT_NE(winner.candidate.realizer, "gone_kernel");
    }
  }
};

// Headers are part of what a toolchain is, so this is what stays of a realizer that went with them.
TEST_F(Remembered, ARealizerThatIsGoneOfAnotherToolchainIsNoStart) {
  remember_gone("with headers of before");
  for (const Work& w : s.work) EXPECT_EQ(w.reuse, rules::Reuse::adapt);
  expect_searched();
  EXPECT_TRUE(s.diagnostics.empty()) << to_text(s.diagnostics.front());
}

TEST_F(Remembered, WhatASearchLeftOutForItsMemoryIsSearchedWhereThereIsRoom) {
  const int64_t left_out_from = int64_t{1} << 40;
  remember_gone(s.tools.toolchain, left_out_from);
  for (const bool room : {false, true}) {
    s.baseline.call_bytes = room ? 2 * left_out_from : left_out_from;  // of results too
    ASSERT_TRUE(look_up_within_memory(s));
    for (const Work& w : s.work)
      EXPECT_EQ(w.reuse, room ? rules::Reuse::adapt : rules::Reuse::reuse) << w.reuse_detail;
  }
}

TEST_F(Remembered, ASourceThatNoLongerBuildsIsSearchedAnew) {
  remember_gone(s.tools.toolchain);
  for (const Work& w : s.work) EXPECT_EQ(w.reuse, rules::Reuse::reuse);
  expect_searched();
  EXPECT_FALSE(s.diagnostics.empty());
}

TEST_F(Searching, StoppedAtOnceNothingIsReached) {
  stop = true;
  ASSERT_TRUE(evaluate_work(s));
  for (const Work& w : s.work) {
    EXPECT_FALSE(w.tuned);
    EXPECT_THAT(w.skipped, HasSubstr("stopped before it was reached"));
  }
}

TEST_F(Searching, AStopKeepsTheBestSoFar) {
  s.on_improved = [&](double, std::size_t) { stop = true; };
  ASSERT_TRUE(evaluate_work(s));
  std::size_t tuned = 0;
  for (const Work& w : s.work) {
    if (!w.tuned) continue;
    ++tuned;
    EXPECT_TRUE(w.tuned->cut);
    EXPECT_EQ(w.tuned->stopped_because, "interrupted");
    EXPECT_FALSE(w.tuned->winners.empty());
  }
  EXPECT_GT(tuned, 0u);
}

TEST_F(Searching, SecondsThatAreSpentAreSaid) {
  options.seconds = 0.001;
  ASSERT_TRUE(evaluate_work(s));
  for (const Work& w : s.work) EXPECT_THAT(w.skipped, HasSubstr("the budget of 0 s was spent"));
}

}  // namespace
}  // namespace tessera::pipeline
