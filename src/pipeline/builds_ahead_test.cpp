// What is built before a search begins: for a small module on the host, with real compilers.
#include "pipeline/builds_ahead.h"

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <thread>

#include "base/clock.h"
#include "pipeline/testing/on_host.h"

namespace tessera::pipeline {
namespace {
using Sources = std::vector<const toolchain::Source*>;

// Functions of the elements of a small matrix, and of a large one.
const char* const graph_text =
    R"({"schema": "tessera.graph/1", "name": "test", "device": "cpu", "precision": "fp32",
 "values": [{"name": "x", "dtype": "float32", "shape": [8, 32], "strides": [32, 1], "origin": "user_input"},
            {"name": "u", "dtype": "float32", "shape": [512, 512], "strides": [512, 1], "origin": "user_input"},
            {"name": "y", "dtype": "float32", "shape": [8, 32], "strides": [32, 1], "origin": "node"},
            {"name": "z", "dtype": "float32", "shape": [8, 32], "strides": [32, 1], "origin": "node"},
            {"name": "v", "dtype": "float32", "shape": [512, 512], "strides": [512, 1], "origin": "node"},
            {"name": "w", "dtype": "float32", "shape": [512, 512], "strides": [512, 1], "origin": "node"}],
 "inputs": ["x", "u"],
 "nodes": [{"name": "y", "op": "aten.add.Tensor", "outputs": ["y"],
            "arguments": {"self": {"value": "x"}, "other": 1.0, "alpha": 1}},
           {"name": "z", "op": "aten.relu.default", "outputs": ["z"], "arguments": {"self": {"value": "y"}}},
           {"name": "v", "op": "aten.add.Tensor", "outputs": ["v"],
            "arguments": {"self": {"value": "u"}, "other": 1.0, "alpha": 1}},
           {"name": "w", "op": "aten.relu.default", "outputs": ["w"], "arguments": {"self": {"value": "v"}}}],
 "outputs": ["z", "w"]})";

class Ahead : public testing::OnHost {
 protected:
  void SetUp() override {
    open(graph_text);
    ASSERT_EQ(s.work.size(), 2u);
    beside_the_clock(true);
  }

  /// The work over matrices of so many rows.
  Work& of_rows(int64_t rows) {
    const auto at = std::find_if(s.work.begin(), s.work.end(), [&](const Work& w) {
      const graph::ValueId out = s.pattern(w.patterns.front()).outputs.front();
      return s.found.graph.value(out).type.shape.front() == rows;
    });
    EXPECT_NE(at, s.work.end()) << rows;
    return *at;
  }

  [[nodiscard]] bool is_of(const toolchain::Source* source, const Work& w) const {
    return w.offers && std::any_of(w.offers->candidates.begin(), w.offers->candidates.end(),
                                   [&](const kernel::Candidate& c) {
                                     return c.source && &*c.source == source;
                                   });
  }
  /// Of all candidates of all works. Asks the realizers itself, for a work's offers may be made
  /// now.
  [[nodiscard]] int in_cache() const {
    int out = 0;
    for (const Work& w : s.work) {
      const rules::Pattern& p = s.pattern(w.patterns.front());
      for (const kernel::Candidate& c :
           evaluate::offers(p, s.found.graph, *s.found.arch).candidates)
        out += c.source && toolchain::find_built(s.tools.evaluation.tools, *c.source,
                                                 s.tools.evaluation.cache)
                   ? 1
                   : 0;
    }
    return out;
  }
};

TEST_F(Ahead, WhatMaySaveMoreComesFirst) {
  const Sources all = first_builds(s, 1000);
  const Work& large = of_rows(512);
  const Work& small = of_rows(8);
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(is_of(all.front(), large));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [&](const auto* source) { return is_of(source, small); }));
  EXPECT_EQ(first_builds(s, 1), Sources{all.front()});
}

TEST_F(Ahead, NothingIsBuiltOfWhatTheRegistryKnows) {
  of_rows(512).reuse = rules::Reuse::reuse;
  for (const toolchain::Source* source : first_builds(s, 1000))
    EXPECT_TRUE(is_of(source, of_rows(8)));
  options.retune = true;
  const Sources again = first_builds(s, 1000);
  EXPECT_TRUE(is_of(again.front(), of_rows(512)));
}

TEST_F(Ahead, TheSearchFindsWhatWasBuilt) {
  BuildsAhead ahead(s);
  const auto begin = std::chrono::steady_clock::now();
  constexpr double patience = 120;
  while (in_cache() == 0 && seconds_since(begin) < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int built = ahead.end();
  EXPECT_GE(built, 1);
  EXPECT_GE(in_cache(), built);
  EXPECT_EQ(ahead.end(), 0);  // once
}

TEST_F(Ahead, NotWhereCompilersWouldDisturbTheClock) {
  beside_the_clock(false);
  BuildsAhead ahead(s);
  EXPECT_EQ(ahead.end(), 0);
  for (const Work& w : s.work) EXPECT_FALSE(w.offers);
}

}  // namespace
}  // namespace tessera::pipeline
