#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "compose/alternatives.h"
#include "compose/choose.h"
#include "compose/plan.h"

namespace tessera::composer {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

// A graph of unary `aten.relu` and binary `aten.add.Tensor` nodes over [4, 4] tensors.
struct Builder {
  Graph g;

  ValueId input(const std::string& name) {
    Value v{.name = name,
            .type = {DType::float32, {4, 4}, {4, 1}},
            .origin = graph::Origin::user_input};
    const ValueId id = g.add_value(v);
    g.inputs.push_back(id);
    return id;
  }
  ValueId node(const std::string& name, const std::string& op, const std::vector<ValueId>& args) {
    Node n{.name = name, .op = op};
    static const char* const names[] = {"self", "other"};
    for (std::size_t i = 0; i < args.size(); ++i) n.arguments.emplace_back(names[i], args[i]);
    const ValueId out = g.add_value({.name = name, .type = {DType::float32, {4, 4}, {4, 1}}});
    n.outputs = {out};
    g.add_node(n);
    return out;
  }
  ValueId relu(const std::string& name, ValueId x) { return node(name, "aten.relu.default", {x}); }
  ValueId add(const std::string& name, ValueId x, ValueId y) {
    return node(name, "aten.add.Tensor", {x, y});
  }

  rules::Pattern pattern(const std::string& id, const std::vector<std::string>& nodes,
                         const std::vector<ValueId>& inputs,
                         const std::vector<ValueId>& outputs) const {
    rules::Pattern p{.id = id, .rule = "pointwise", .inputs = inputs, .outputs = outputs};
    for (const std::string& n : nodes) p.nodes.push_back(*g.find_node(n));
    p.computing = p.nodes;
    return p;
  }
};

TEST(Choose, TakesTheSetThatSavesMostNotTheBiggestFirst) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId a1 = b.relu("a", x);
  const ValueId a2 = b.relu("b", a1);
  const ValueId a3 = b.relu("c", a2);
  b.g.outputs = {a3};
  const auto middle = b.pattern("mid", {"a", "b", "c"}, {x}, {a3});
  const auto left = b.pattern("left", {"a", "b"}, {x}, {a2});
  const auto right = b.pattern("right", {"c"}, {a2}, {a3});
  const Choice c = choose(b.g, {{&middle, 1, 4}, {&left, 1, 3}, {&right, 1, 3}});
  EXPECT_EQ(c.gain_ms, 4);  // 2 + 2 beats 3
  EXPECT_EQ(c.chosen.size(), 2);
  ASSERT_EQ(c.left_out.size(), 1);
  EXPECT_EQ(c.left_out[0].first, 0);
  EXPECT_NE(c.left_out[0].second.find("overlaps"), std::string::npos);
}

TEST(Choose, LeavesOutWhatDoesNotGain) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId y = b.relu("a", x);
  b.g.outputs = {y};
  const auto p = b.pattern("p", {"a"}, {x}, {y});
  const Choice c = choose(b.g, {{&p, 2, 1}});
  EXPECT_TRUE(c.chosen.empty());
  EXPECT_NE(c.left_out.at(0).second.find("no gain"), std::string::npos);
}

/// A chain a -> b -> c -> d with patterns over it: the whole, its first three ops, its last.
struct Chain {
  Builder b;
  rules::Pattern whole, part, last;
  Chain() {
    const ValueId x = b.input("x");
    const ValueId a = b.relu("a", x);
    const ValueId c = b.relu("c", b.relu("b", a));
    const ValueId d = b.relu("d", c);
    b.g.outputs = {d};
    whole = b.pattern("p01", {"a", "b", "c", "d"}, {x}, {d});
    part = b.pattern("p03", {"a", "b", "c"}, {x}, {c});
    last = b.pattern("p04", {"d"}, {c}, {d});
  }
};

// The part was timed at a noisier moment than the whole, and its kernel is the slower one.
TEST(Choose, APartsNoisyBaselineIsTheWholesToo) {
  const Chain c;
  std::vector<Option> options = {{&c.whole, 16.1, 203.4}, {&c.part, 24.9, 216.5}};
  EXPECT_EQ(choose(c.b.g, options).chosen, std::vector<int>{1});
  raise_baselines(options);
  EXPECT_EQ(options[0].eager_ms, 216.5);
  EXPECT_EQ(options[1].eager_ms, 216.5);
  const Choice choice = choose(c.b.g, options);
  EXPECT_EQ(choice.chosen, std::vector<int>{0});
  EXPECT_EQ(choice.displaced, (std::map<int, int>{{1, 0}}));
}

TEST(Choose, AnEstimateRaisesNoBaselineAndIsRaised) {
  const Chain c;
  std::vector<Option> options = {{&c.whole, 1, 3}, {&c.part, 1, 9}, {&c.last, 1, 4}};
  options[1].estimated = true;
  raise_baselines(options);
  EXPECT_EQ(options[0].eager_ms, 4);
  EXPECT_EQ(options[1].eager_ms, 9);
  EXPECT_EQ(options[2].eager_ms, 4);
}

TEST(Alternatives, ALeftOutWinnerWithWhatIsCompatible) {
  const Chain c;
  const std::vector<Option> options = {{&c.whole, 16, 200}, {&c.part, 25, 190}, {&c.last, 1, 9}};
  const Choice choice = choose(c.b.g, options);
  ASSERT_EQ(choice.chosen, std::vector<int>{0});
  const auto found = alternatives(c.b.g, options, choice, 0.01);
  ASSERT_EQ(found.size(), 1U);  // the part and the last op find one another, once
  EXPECT_EQ(std::set<int>(found[0].chosen.begin(), found[0].chosen.end()), (std::set<int>{1, 2}));
  EXPECT_EQ(found[0].gain_ms, 173);
  EXPECT_FALSE(found[0].near);
  EXPECT_TRUE(alternatives(c.b.g, options, choice, 0.05)[0].near);
}

TEST(Alternatives, WhatSavesNothingHeadsNone) {
  const Chain c;
  const std::vector<Option> options = {{&c.whole, 16, 200}, {&c.part, 25, 20}};
  EXPECT_TRUE(alternatives(c.b.g, options, choose(c.b.g, options), 1).empty());
}

// p = {a, d} and q = {b, c} with a -> b and c -> d: each is fine alone, together they wait for each
// other.
TEST(Choose, NeverBuildsACycle) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId y = b.input("y");
  const ValueId a = b.relu("a", x);
  const ValueId bb = b.relu("b", a);
  const ValueId c = b.relu("c", y);
  const ValueId d = b.relu("d", c);
  b.g.outputs = {bb, d};
  const auto p = b.pattern("p", {"a", "d"}, {x, c}, {a, d});
  const auto q = b.pattern("q", {"b", "c"}, {a, y}, {bb, c});
  EXPECT_TRUE(acyclic(b.g, {&p}));
  EXPECT_TRUE(acyclic(b.g, {&q}));
  EXPECT_FALSE(acyclic(b.g, {&p, &q}));
  const Choice choice = choose(b.g, {{&p, 1, 5}, {&q, 1, 3}});
  ASSERT_EQ(choice.chosen.size(), 1);
  EXPECT_EQ(choice.chosen[0], 0);
  EXPECT_NE(choice.left_out.at(0).second.find("cycle"), std::string::npos);
}

kernel::Winner built() {
  kernel::Winner w;
  w.candidate.source = toolchain::Source{};
  w.built = toolchain::Built{.library = "/k.so"};
  return w;
}

TEST(Plan, WhatDrawsRandomNumbersRunsInTheOrderOfTheTrace) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId first = b.node("first", "aten.rand_like.default", {x});
  const ValueId second = b.node("second", "aten.randn_like.default", {x});
  const ValueId third = b.node("third", "aten.bernoulli.default", {x});
  (void)third;  // nothing reads it, and later calls draw what follows
  const ValueId y = b.relu("y", first);
  b.g.outputs = {second, y};
  const Json steps = to_json(*make_plan(b.g, {}, {}, {})).at("steps");
  std::vector<std::string> order;
  for (const Json& s : steps) order.push_back(s.at("node"));
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second", "y", "third"}));
}

// k = {c, d} makes what `first` reads of what `second` makes, which would have to be drawn before.
TEST(Choose, NeverDrawsRandomNumbersInAnotherOrder) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId c = b.relu("c", x);
  const ValueId first = b.node("first", "aten.bernoulli.default", {c});
  const ValueId second = b.node("second", "aten.rand_like.default", {x});
  const ValueId d = b.relu("d", second);
  b.g.outputs = {first, d};
  const auto k = b.pattern("k", {"c", "d"}, {x, second}, {c, d});
  EXPECT_FALSE(acyclic(b.g, {&k}));
}

TEST(Plan, OrdersKernelsAndLeftoverAndNamesReasons) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId a = b.relu("a", x);
  const ValueId c = b.relu("c", a);
  const ValueId s = b.add("s", a, c);
  const ValueId unused = b.relu("unused", x);
  (void)unused;
  b.g.outputs = {s};
  const auto p = b.pattern("p", {"c", "s"}, {a}, {s});
  const auto plan = make_plan(b.g, {{.pattern = &p, .winner = built(), .eager_ms = 2}},
                              {{*b.g.find_node("a"), "too small"}}, {.arch = "host"});
  ASSERT_TRUE(plan) << to_text(plan.error());
  EXPECT_EQ(plan->kind(), "mixed");
  const Json j = to_json(*plan);
  EXPECT_EQ(j.at("arch"), "host");
  EXPECT_EQ(j.at("kind"), "mixed");
  EXPECT_EQ(j.at("runner"), "kernels");
  ASSERT_EQ(j.at("steps").size(), 2);
  EXPECT_EQ(j.at("steps")[0].at("kind"), "aten");
  EXPECT_EQ(j.at("steps")[0].at("node"), "a");
  EXPECT_EQ(j.at("steps")[1].at("kind"), "kernel");
  EXPECT_EQ(j.at("steps")[1].at("inputs"), Json::array({"a"}));
  EXPECT_EQ(j.at("steps")[1].at("candidate").at("library"), "/k.so");
  EXPECT_EQ(j.at("steps")[1].at("evidence").at("eager_ms"), 2);
  ASSERT_EQ(j.at("leftover").size(), 1);
  EXPECT_EQ(j.at("leftover")[0].at("reason"), "too small");
}

TEST(Plan, KernelsThatWaitForThemselvesAreOurFault) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId a = b.relu("a", x);
  const ValueId between = b.relu("between", a);
  const ValueId c = b.relu("c", between);
  b.g.outputs = {c};
  const auto p = b.pattern("p", {"a", "c"}, {x, between}, {a, c});
  EXPECT_EQ(make_plan(b.g, {{.pattern = &p, .winner = built()}}, {}, {}).error().code, "TS0902");
}

TEST(Plan, WithoutALeftoverItIsOfItsKernelsKind) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId a = b.relu("a", x);
  b.g.outputs = {a};
  const auto p = b.pattern("p", {"a"}, {x}, {a});
  EXPECT_EQ(make_plan(b.g, {{.pattern = &p, .winner = built()}}, {}, {})->kind(), "synthesized");
  kernel::Winner call;
  call.candidate = {.kind = kernel::Kind::library, .call = kernel::LibraryCall{.function = "sdpa"}};
  const auto library = make_plan(b.g, {{.pattern = &p, .winner = call}}, {}, {});
  EXPECT_EQ(library->kind(), "library");
  EXPECT_EQ(to_json(*library).at("steps")[0].at("kind"), "call");
  EXPECT_EQ(make_plan(b.g, {}, {}, {})->kind(), "library");  // PyTorch runs its vendor's
}

// An attention kernel goes by what a mask is known to be. Where the mask is made of numbers it is
// not made at all, and the kernels that were to make it are not needed.
TEST(Plan, WhatAKernelDoesNotReadIsNotMade) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId ones = b.node("ones", "aten.ones.default", {});
  const ValueId mask = b.relu("mask", ones);
  const ValueId y = b.add("y", x, mask);
  b.g.outputs = {y};
  const auto reader = b.pattern("reader", {"y"}, {x, mask}, {y});
  const auto maker = b.pattern("maker", {"mask"}, {ones}, {mask});
  std::vector<Placed> placed = {{.pattern = &reader, .winner = built()},
                                {.pattern = &maker, .winner = built()}};
  EXPECT_EQ(*unneeded(b.g, placed), std::vector<int>{});
  EXPECT_EQ(to_json(*make_plan(b.g, placed, {}, {})).at("steps").size(), 3);
  placed[0].winner.candidate.unread = {1};
  EXPECT_EQ(*unneeded(b.g, placed), std::vector<int>{1});
  const Json steps = to_json(*make_plan(b.g, placed, {}, {})).at("steps");
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].at("inputs"), Json::array({"x", "mask"}));
  EXPECT_EQ(steps[0].at("spared"), Json::array({1}));
}

// Its guards hold what is known of it, and go with it.
TEST(Plan, WhatComesFromOutsideIsTakenThoughAKernelDoesNotReadIt) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId mask = b.relu("mask", b.input("given"));
  const ValueId y = b.add("y", x, mask);
  b.g.outputs = {y};
  const auto reader = b.pattern("reader", {"y"}, {x, mask}, {y});
  std::vector<Placed> placed = {{.pattern = &reader, .winner = built()}};
  placed[0].winner.candidate.unread = {1};
  EXPECT_TRUE(spared_inputs(b.g, placed[0]).empty());
  EXPECT_EQ(to_json(*make_plan(b.g, placed, {}, {})).at("steps").size(), 2);
}

// A value inside a pattern that someone else reads is computed again by PyTorch: slower, never
// wrong.
TEST(Plan, RecomputesAnInnerValueThatIsReadOutside) {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId a = b.relu("a", x);
  const ValueId c = b.relu("c", a);
  b.g.outputs = {c, a};
  const auto p = b.pattern("p", {"a", "c"}, {x}, {c});
  const auto plan = make_plan(b.g, {{.pattern = &p, .winner = built()}}, {}, {});
  ASSERT_TRUE(plan);
  const Json steps = to_json(*plan).at("steps");
  EXPECT_EQ(steps.size(), 2);
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(),
                          [](const Json& s) { return s.value("node", "") == "a"; }));
}

}  // namespace
}  // namespace tessera::composer
