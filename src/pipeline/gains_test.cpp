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
    w.patterns = {static_cast<int>(s.work.size())};
    s.work.push_back(w);
    return s.work.size() - 1;
  }

  void eager(std::size_t at, double ms) { s.work[at].tuned.emplace().eager_ms = ms; }
  void kernel(std::size_t at, realize::Kind kind, double ms) {
    Tuned::Winner w{.candidate = {.kind = kind}, .built = {}, .evidence = {}};
    if (kind == realize::Kind::library) w.candidate.call = realize::LibraryCall{.function = "sdpa"};
    w.evidence.ms = ms;
    s.work[at].tuned->winners.push_back(std::move(w));
  }
  void synthesized(std::size_t at, double ms) { kernel(at, realize::Kind::synthesized, ms); }
  void library(std::size_t at, double ms) { kernel(at, realize::Kind::library, ms); }
  void aten(std::size_t at, double ms) {
    kernel(at, realize::Kind::library, ms);
    s.work[at].tuned->winners.back().candidate.call->function = "aten";
  }
  [[nodiscard]] std::string covered(std::size_t at) const { return covered_by(s, s.work[at]); }
};

TEST(CoveredBy, KernelsThatSaveOnAllOfItsOps) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  EXPECT_EQ(e.covered(part), "");
  e.eager(whole, 2);
  e.synthesized(whole, 1.5);
  EXPECT_EQ(e.covered(part), "p0 already save 0.5 ms on all of its ops");
  e.options.effort = "max";
  EXPECT_EQ(e.covered(part), "");
}

TEST(CoveredBy, TheOpsThemselvesSaveNothingButNoise) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.aten(whole, 1.5);
  e.library(whole, 2.1);
  EXPECT_EQ(e.covered(part), "");
  e.library(whole, 1.9);
  EXPECT_EQ(e.covered(part), "p0 already save 0.1 ms on all of its ops");
}

TEST(CoveredBy, WhatLosesLeavesItsOpsToOthers) {
  Evaluated e;
  const auto first = e.work(0, 0);
  const auto second = e.work(1, 1);
  const auto both = e.work(0, 1);
  e.eager(first, 1);
  e.synthesized(first, 0.2);
  e.eager(second, 1);
  e.synthesized(second, 1.1);
  EXPECT_EQ(e.covered(both), "");
  e.synthesized(second, 0.8);
  EXPECT_EQ(e.covered(both), "p0, p1 already save 1 ms on all of its ops");
}

TEST(CoveredBy, WhereTheRooflineIsReached) {
  Evaluated e;
  const auto most = e.work(0, 2);
  const auto all = e.work(0, 3);
  e.eager(most, 3);
  e.synthesized(most, 0.2);
  EXPECT_EQ(e.covered(all), "");
  e.s.found.discovery.patterns[all].floor_ms = 1.5;
  EXPECT_EQ(e.covered(all), "with p0 its ops take 1.2 ms; at the roofline it would 1.5 ms");
}

TEST(CoveredBy, OnlyWhatMayBePlacedCounts) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.library(whole, 1.5);
  e.options.only_kind = "synthesized";
  EXPECT_EQ(e.covered(part), "");
  e.synthesized(whole, 1.8);
  EXPECT_EQ(e.covered(part), "p0 already save 0.2 ms on all of its ops");
}

TEST(ChooseKernels, AnOrderFromTheModulesRunChangesNothing) {
  Evaluated e;
  const auto whole = e.work(0, 1);
  const auto part = e.work(1, 1);
  e.eager(whole, 2);
  e.library(whole, 2.05);  // the fastest within the module
  e.synthesized(whole, 1.95);
  choose_kernels(e.s);
  ASSERT_EQ(e.s.choice.chosen.size(), 1U);
  EXPECT_EQ(placeable(e.s, e.s.work[whole])->candidate.kind, realize::Kind::library);
  EXPECT_NE(e.covered(part), "");
  e.options.only_kind = "library";
  choose_kernels(e.s);
  EXPECT_TRUE(e.s.choice.chosen.empty());
}

}  // namespace
}  // namespace tessera::pipeline
