#include "pipeline/gains.h"

#include <gtest/gtest.h>

namespace tessera::pipeline {
namespace {

using evaluate::Tuned;

/// A session over a chain of ops whose works have been evaluated, or not.
struct Evaluated {
  Options options;
  Context context;
  Session s{.options = options, .context = context};

  Evaluated() {
    graph::Graph& g = s.found.graph;
    graph::ValueId x = g.add_value({.name = "x", .type = {DType::float32, {4}, {1}}});
    g.inputs = {x};
    for (const char* name : {"op0", "op1", "op2", "op3"}) {
      graph::Node n{.name = name, .op = "aten.relu.default"};
      n.arguments.emplace_back("self", x);
      x = g.add_value({.name = name, .type = {DType::float32, {4}, {1}}});
      n.outputs = {x};
      g.add_node(n);
    }
    g.outputs = {x};
  }

  /// Ops `from` to `to`, both included, estimated at 1 ms each; a floor of 0.1 ms.
  std::size_t work(int from, int to) {
    const graph::Graph& g = s.found.graph;
    rules::Pattern p{.id = "p" + std::to_string(s.work.size()), .rule = "pointwise"};
    for (int i = from; i <= to; ++i) {
      const graph::NodeId n = g.order.at(static_cast<std::size_t>(i));
      p.computing.push_back(n);
      p.outputs = g.node(n).outputs;
    }
    p.inputs = graph::tensor_arguments(g.node(p.computing.front()));
    p.nodes = p.computing;
    p.unfused_ms = static_cast<double>(p.nodes.size());
    p.floor_ms = 0.1;
    s.found.discovery.patterns.push_back(p);
    Work w;
    w.patterns = {static_cast<int>(s.found.discovery.patterns.size()) - 1};
    s.work.push_back(w);
    return s.work.size() - 1;
  }

  void eager(std::size_t at, double ms) { s.work[at].tuned.emplace().eager_ms = ms; }
  void kernel(std::size_t at, kernel::Kind kind, double ms) {
    kernel::Winner w{.candidate = {.kind = kind}, .built = {}, .evidence = {}};
    if (kind == kernel::Kind::library) w.candidate.call = kernel::LibraryCall{.function = "sdpa"};
    w.evidence.ms = ms;
    s.work[at].tuned->winners.push_back(std::move(w));
  }
  void synthesized(std::size_t at, double ms) { kernel(at, kernel::Kind::synthesized, ms); }
  void library(std::size_t at, double ms) { kernel(at, kernel::Kind::library, ms); }
  void aten(std::size_t at, double ms) {
    kernel(at, kernel::Kind::library, ms);
    s.work[at].tuned->winners.back().candidate.call->function = "aten";
  }
  /// Another place of the same work, of one op.
  void also_at(std::size_t at, int op) {
    rules::Pattern p = s.pattern(s.work[at].patterns.front());
    const graph::NodeId n = s.found.graph.order.at(static_cast<std::size_t>(op));
    p.id += "b";
    p.nodes = p.computing = {n};
    p.outputs = s.found.graph.node(n).outputs;
    p.inputs = graph::tensor_arguments(s.found.graph.node(n));
    s.work[at].patterns.push_back(static_cast<int>(s.found.discovery.patterns.size()));
    s.found.discovery.patterns.push_back(p);
  }
  [[nodiscard]] Standing standing() const {
    std::vector<Price> prices;
    for (const Work& w : s.work) prices.push_back(price_of(s, w));
    return {s, prices};
  }
};

TEST(Standing, WithoutKernelsTheBarIsTheOpsOneByOne) {
  Evaluated e;
  const auto timed = e.work(0, 1);
  const auto estimated = e.work(2, 3);
  e.eager(timed, 3);
  EXPECT_DOUBLE_EQ(e.standing().bar(timed), 3);
  EXPECT_DOUBLE_EQ(e.standing().bar(estimated), 2);
  EXPECT_DOUBLE_EQ(e.standing().saved_ms(timed), 0);
}

TEST(Standing, WhatOthersSaveWouldBeLost) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.eager(part, 1);
  e.synthesized(whole, 1.5);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.5);
  EXPECT_DOUBLE_EQ(e.standing().bar(whole), 2);  // its own kernel is no obstacle
  EXPECT_DOUBLE_EQ(e.standing().saved_ms(whole), 0.5);
  e.options.effort = "max";
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 1);
}

TEST(Standing, KernelsOfPartsStandAgainstTheWhole) {
  Evaluated e;
  const auto first = e.work(0, 0);
  const auto second = e.work(1, 1);
  const auto both = e.work(0, 1);
  e.eager(first, 1);
  e.synthesized(first, 0.2);
  e.eager(second, 1);
  e.synthesized(second, 1.1);  // loses, so it is not placed
  e.eager(both, 2);
  EXPECT_DOUBLE_EQ(e.standing().bar(both), 1.2);
  e.synthesized(second, 0.8);
  EXPECT_DOUBLE_EQ(e.standing().bar(both), 1.0);
}

TEST(Standing, TheOpsThemselvesSaveNothingButNoise) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.aten(whole, 1.5);
  e.library(whole, 2.1);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 1);
  e.library(whole, 1.9);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.9);
}

TEST(Standing, OnlyWhatMayBePlacedCounts) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.library(whole, 1.5);
  e.options.only_kind = "synthesized";
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 1);
  e.synthesized(whole, 1.8);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.8);
}

TEST(Standing, CountsThePlacesThatGain) {
  Evaluated e;
  const auto twice = e.work(0, 0);
  e.also_at(twice, 1);
  const auto other = e.work(1, 2);
  e.eager(twice, 1);
  e.eager(other, 2);
  e.synthesized(other, 1.2);
  const Standing now = e.standing();
  EXPECT_DOUBLE_EQ(now.bar(twice), 1);
  EXPECT_EQ(now.places_above(twice, 0.9), 1);
  EXPECT_EQ(now.places_above(twice, 0.1), 2);
}

TEST(ChooseKernels, AnOrderFromTheModulesRunChangesNothing) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.library(whole, 2.05);  // the fastest within the module
  e.synthesized(whole, 1.95);
  ASSERT_EQ(choose_kernels(e.s).choice.chosen.size(), 1U);
  EXPECT_EQ(placeable(e.s, e.s.work[whole])->candidate.kind, kernel::Kind::library);
  EXPECT_DOUBLE_EQ(e.standing().bar(part), 0.95);
  e.options.only_kind = "library";
  EXPECT_TRUE(choose_kernels(e.s).choice.chosen.empty());
}

}  // namespace
}  // namespace tessera::pipeline
