#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "base/files.h"
#include "base/source_folder.h"
#include "graph/operand.h"
#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph {
namespace {

Json fixture(const std::string& name) {
  return parse_json(read_file(source_folder() + "/src/graph/testdata/" + name + ".json"));
}

TEST(GraphJson, RoundTripIsStable) {
  for (const char* name : {"minigpt", "llama_written", "views", "attention_where"}) {
    auto g = import_graph(fixture(name));
    ASSERT_TRUE(g.has_value()) << to_text(g.error());
    const Json once = to_json(*g);
    auto again = import_graph(once);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(once.dump(), to_json(*again).dump()) << name;
    EXPECT_EQ(to_text(*g), to_text(*again));
  }
}

TEST(GraphJson, KeepsKindsOfArguments) {
  auto g = import_graph(fixture("minigpt"));
  ASSERT_TRUE(g.has_value());
  const Node& fill = g->node(*g->find_node("masked_fill"));
  EXPECT_EQ(fill.number("value"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(g->value(fill.tensor("mask")).type.dtype, DType::boolean);
  const Value& mask = g->value(*g->find_value("b_attention_mask"));
  EXPECT_EQ(mask.origin, Origin::buffer);
  EXPECT_EQ(mask.target, "attention.mask");
  EXPECT_EQ(mask.facts.at("diagonal"), 0);
}

TEST(GraphJson, MalformedGraphsAreDiagnosed) {
  EXPECT_EQ(import_graph(Json::object()).error().code, "TS0201");
  Json j = fixture("silu");
  j["nodes"][0]["arguments"]["self"] = {{"value", "nowhere"}};
  auto g = import_graph(j);
  ASSERT_FALSE(g.has_value());
  EXPECT_THAT(g.error().message, testing::HasSubstr("nowhere"));
  Json k = fixture("silu");
  k["values"][0]["dtype"] = "complex64";
  EXPECT_EQ(import_graph(k).error().code, "TS0010");
}

TEST(Graph, UsesReplacementsAndDeadNodes) {
  auto imported = import_graph(fixture("silu"));  // neg, exp, add, div
  ASSERT_TRUE(imported.has_value());
  Graph& g = *imported;
  ASSERT_EQ(g.order.size(), 4U);
  const ValueId x = g.inputs[0];
  EXPECT_EQ(g.uses(x).size(), 2U);
  const NodeId last = g.order.back();
  EXPECT_THROW(g.erase(g.order.front()), std::logic_error);
  g.replace_uses(g.node(last).outputs[0], x);
  g.erase_dead();
  EXPECT_TRUE(g.order.empty());
  EXPECT_EQ(g.outputs, std::vector<ValueId>{x});
  EXPECT_EQ(g.fresh_name("x"), "x_1");
}

TEST(Graph, WhatIsAssertedIsComputed) {
  Json j = fixture("silu");
  const std::string condition = j["nodes"][1]["outputs"][0];  // of exp
  j["assertions"] = Json::array({{{"value", condition}, {"message", "positive"}}});
  auto g = import_graph(j);
  ASSERT_TRUE(g.has_value());
  g->outputs = {g->inputs[0]};
  g->erase_dead();
  EXPECT_EQ(g->order.size(), 2U);  // neg, exp
  EXPECT_TRUE(g->is_output(*g->find_value(condition)));
  EXPECT_EQ(to_json(*g)["assertions"], j["assertions"]);
  EXPECT_THAT(to_text(*g), testing::HasSubstr("assert %" + condition + "  \"positive\""));
}

TEST(Operand, SeesThroughChainsOfViews) {
  auto g = import_graph(fixture("views"));
  ASSERT_TRUE(g.has_value());
  // x[:, 1:5:2].transpose(1, 2) as [4,16,2], split to [4,4,4,2], permuted to [2,4,4,4], select(1,
  // 2).
  const Node& add = g->node(*g->find_node("add"));
  const Operand o = resolve(*g, add.tensor("self"));
  EXPECT_EQ(g->value(o.base).name, "x");
  EXPECT_EQ(o.shape, (std::vector<int64_t>{2, 4, 4}));
  EXPECT_EQ(o.strides, (std::vector<int64_t>{32, 4, 1}));
  EXPECT_EQ(o.offset, 2 * 96 + 16);
  // The fourth row of the second half of each.
  const Operand part = resolve(*g, g->outputs[1]);
  EXPECT_EQ(to_string(*g, part), "%x[4,8]:(96,1)+56");
  // transpose(0, 1).reshape(24, 16) moves data: its copy is folded into a gather that strides
  // cannot say.
  const Node& mul = g->node(*g->find_node("mul"));
  const Operand moved = resolve(*g, mul.tensor("self"));
  EXPECT_NE(g->value(moved.base).name, "x");
}

TEST(Operand, ReshapeMergesAndSplits) {
  Operand o{.base = ValueId(0U), .shape = {4, 6, 8}, .strides = {48, 8, 1}};
  EXPECT_EQ(reshaped(o, {24, 2, 4})->strides, (std::vector<int64_t>{8, 4, 1}));
  o.strides = {100, 8, 1};
  EXPECT_EQ(reshaped(o, {4, 48})->strides, (std::vector<int64_t>{100, 1}));
  EXPECT_FALSE(reshaped(o, {24, 8}));
  EXPECT_FALSE(reshaped(o, {4, 6, 9}));
  o.strides = {0, 8, 1};  // broadcast along the first dim
  EXPECT_EQ(reshaped(o, {2, 2, 48})->strides, (std::vector<int64_t>{0, 0, 1}));
}

TEST(Ops, RecordsAndCosts) {
  EXPECT_EQ(find_op("aten.gelu.default"), find_op("aten.gelu"));
  EXPECT_EQ(find_op("aten.no_such_op"), nullptr);
  auto g = import_graph(fixture("minigpt"));
  ASSERT_TRUE(g.has_value());
  const Node& linear = g->node(*g->find_node("linear"));
  EXPECT_EQ(flops_of(*g, linear), 2.0 * 2 * 16 * 96 * 32);
  EXPECT_EQ(bytes_of(*g, linear), 4 * (2 * 16 * 32 + 96 * 32 + 96 + 2 * 16 * 96));
  EXPECT_EQ(bytes_of(*g, g->node(*g->find_node("transpose"))), 0);
}

TEST(Ops, WhatDrawsRandomNumbersIsKnown) {
  const auto drawing = [](std::string op, std::vector<std::pair<std::string, Argument>> with) {
    Node n;
    n.op = std::move(op);
    n.arguments = std::move(with);
    return draws(n);
  };
  EXPECT_TRUE(drawing("aten.normal_functional.default", {}));
  EXPECT_TRUE(drawing("aten.rrelu.default", {{"training", true}}));
  EXPECT_TRUE(drawing("aten.dropout.default", {{"p", 0.5}, {"train", true}}));
  EXPECT_FALSE(drawing("aten.dropout.default", {{"p", 0.5}, {"train", false}}));
  EXPECT_TRUE(drawing("aten.scaled_dot_product_attention.default", {{"dropout_p", 0.1}}));
  EXPECT_FALSE(drawing("aten.scaled_dot_product_attention.default", {}));
  EXPECT_TRUE(drawing("aten.lstm.input", {{"dropout", 0.5}, {"train", true}}));
  EXPECT_FALSE(drawing("aten.lstm.input", {{"dropout", 0.5}, {"train", false}}));
}

TEST(Ops, AnOpHasOneRecord) {
  std::set<std::string_view> names;
  for (const OpRecord& record : records())
    EXPECT_TRUE(names.insert(record.name).second) << record.name << " has two records";
}

TEST(Ops, WhatARecordCallsIsAFunctionOfSelfAndOther) {
  int named = 0;
  for (const OpRecord& record : records()) {
    if (record.pointwise.function.empty()) continue;
    ++named;
    const pointwise::Function* f = pointwise::find(record.pointwise.function);
    ASSERT_NE(f, nullptr) << record.name;
    EXPECT_LE(f->arity, 2) << record.name << " needs a builder: it has more arguments";
  }
  EXPECT_GT(named, 50);
}

TEST(Ops, AFunctionThatNamesItsOpIsTheOpsRecord) {
  const OpRecord* silu = find_op("aten.silu.default");
  ASSERT_NE(silu, nullptr);
  EXPECT_EQ(silu->kind, OpKind::pointwise);
  EXPECT_EQ(silu->pointwise.function, "silu");
}

TEST(AppendPointwise, ReadsScalarsAndRefusesWideIntegers) {
  auto g = import_graph(fixture("silu"));
  ASSERT_TRUE(g.has_value());
  pointwise::Dag dag;
  std::vector<std::pair<ValueId, int>> known = {{g->inputs[0], dag.add_operand(0)}};
  for (const NodeId id : g->order) {
    auto index = append_pointwise(dag, *g, g->node(id), known);
    ASSERT_TRUE(index.has_value());
    known.emplace_back(g->node(id).outputs[0], *index);
    dag.results = {*index};
  }
  EXPECT_THAT(dag.to_string(), testing::AllOf(testing::StartsWith("div(%0, add("),
                                              testing::HasSubstr("exp(neg(%0))")));
  g->value(g->inputs[0]).type.dtype = DType::int64;
  EXPECT_EQ(append_pointwise(dag, *g, g->node(g->order[0]), known).error().code, "TS0210");
}

}  // namespace
}  // namespace tessera::graph
