#include "rewrite/canonical.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "graph/operand.h"
#include "graph/ops.h"

#include "rewrite/rewrite.h"

namespace tessera::rewrite {
namespace {

using testing::ElementsAre;

Graph load(const std::string& name) {
  const Json j = parse_json(read_file(source_folder() + "/src/graph/testdata/" + name + ".json"));
  auto g = graph::import_graph(j);
  EXPECT_TRUE(g.has_value()) << to_text(g.error());
  return *g;
}

Graph canonical(const std::string& name, std::vector<Rewrite>* done = nullptr) {
  Graph g = load(name);
  std::vector<Rewrite> log = canonicalize(g);
  if (done != nullptr) *done = std::move(log);
  return g;
}

/// The computing ops in order, without views and copies.
std::vector<std::string> computing(const Graph& g) {
  std::vector<std::string> out;
  for (const NodeId id : g.order) {
    const OpKind kind = kind_of(g.node(id));
    if (kind == OpKind::view || g.node(id).op.starts_with("aten.clone")) continue;
    out.push_back(g.node(id).op.substr(5, g.node(id).op.find('.', 5) - 5));
  }
  return out;
}

const Node& only(const Graph& g, std::string_view op) {
  const Node* found = nullptr;
  for (const NodeId id : g.order) {
    if (!g.node(id).op.starts_with(op)) continue;
    EXPECT_EQ(found, nullptr) << "two " << op;
    found = &g.node(id);
  }
  EXPECT_NE(found, nullptr) << "no " << op;
  return *found;
}

TEST(Canonical, ConversionsAreLaidOutAsPyTorchLeavesThem) {
  const auto strides_after = [](const Json& strides) {
    const auto value = [](const char* name, const char* dtype, const Json& s, const char* origin) {
      return Json{
          {"name", name}, {"dtype", dtype}, {"shape", {4, 6}}, {"strides", s}, {"origin", origin}};
    };
    const Json j = {
        {"schema", "tessera.graph/1"},
        {"name", "conversion"},
        {"values",
         {value("x", "float32", strides, "user_input"),
          value("like", "bfloat16", {6, 1}, "user_input"), value("y", "bfloat16", {6, 1}, "node"),
          value("z", "bfloat16", {6, 1}, "node")}},
        {"inputs", {"x", "like"}},
        {"nodes",
         {{{"name", "y"},
           {"op", "aten.type_as.default"},
           {"arguments", {{"self", {{"value", "x"}}}, {"other", {{"value", "like"}}}}},
           {"outputs", {"y"}}},
          {{"name", "z"},
           {"op", "aten.sin.default"},
           {"arguments", {{"self", {{"value", "y"}}}}},
           {"outputs", {"z"}}}}},
        {"outputs", {"z"}}};
    auto g = graph::import_graph(j);
    EXPECT_TRUE(g.has_value()) << to_text(g.error());
    canonicalize(*g);
    return g->value(only(*g, "aten._to_copy").outputs.front()).type.strides;
  };
  EXPECT_THAT(strides_after({6, 1}), ElementsAre(6, 1));
  EXPECT_THAT(strides_after({1, 4}), ElementsAre(1, 4));  // dense in another order: kept
  EXPECT_THAT(strides_after({0, 1}), ElementsAre(6, 1));  // rows that share their storage
}

TEST(Canonical, MiniGptIsNormsLinearsAttentionGelu) {
  std::vector<Rewrite> log;
  const Graph g = canonical("minigpt", &log);
  EXPECT_THAT(computing(g),
              ElementsAre("layer_norm", "linear", "scaled_dot_product_attention", "linear", "add",
                          "layer_norm", "linear", "gelu", "linear", "add"));
  const Node& attention = only(g, "aten.scaled_dot_product_attention");
  EXPECT_EQ(attention.flag("is_causal"), true);
  EXPECT_EQ(attention.number("scale"), 0.25);
  EXPECT_FALSE(attention.tensor("attn_mask").valid());
  const Node& gelu = only(g, "aten.gelu");
  EXPECT_EQ(gelu.text("approximate"), "tanh");
  EXPECT_EQ(gelu.rewritten_from, "tanh-GELU written out");
  EXPECT_EQ(gelu.covers.size(), 8U);
  EXPECT_EQ(gelu.module, "activation");
  EXPECT_EQ(log.size(), 2U);
}

TEST(Canonical, AFamilyIsSwitchedOffByItsName) {
  const auto rewritten = [](const std::set<std::string>& without) {
    Graph g = load("minigpt");
    canonicalize(g, without);
    return computing(g);
  };
  const auto has = [](const char* op) { return testing::Contains(std::string(op)); };
  EXPECT_THAT(rewritten({"attention"}), testing::Not(has("scaled_dot_product_attention")));
  EXPECT_THAT(rewritten({"attention"}), has("gelu"));
  EXPECT_THAT(rewritten({"by_value"}), testing::Not(has("gelu")));
  const std::vector<std::string> all = families();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_THAT(all, testing::IsSupersetOf({"noops", "attention", "sibling_rotary", "norm_factor"}));
  Graph g = load("minigpt");
  EXPECT_THAT(canonicalize(g, {all.begin(), all.end()}), testing::IsEmpty());
  Graph traced = load("minigpt");
  traced.erase_dead();
  EXPECT_EQ(computing(g), computing(traced));
}

TEST(Canonical, LlamaWrittenOutHasGroupedCausalAttention) {
  const Graph g = canonical("llama_written");
  EXPECT_THAT(computing(g),
              ElementsAre("cat", "rms_norm", "linear", "mul", "neg", "cat", "mul", "add", "cat",
                          "scaled_dot_product_attention", "linear", "add", "rms_norm", "linear",
                          "silu", "linear", "mul", "linear", "add"));
  const Node& attention = only(g, "aten.scaled_dot_product_attention");
  EXPECT_EQ(attention.flag("is_causal"), true);
  EXPECT_EQ(attention.flag("enable_gqa"), true);
  EXPECT_EQ(g.value(attention.tensor("key")).type.shape, (std::vector<int64_t>{2, 2, 16, 8}));
  // The merged projection, rotated, is read through strided views: rows of 64 + 16 + 16 elements.
  const Operand v = resolve(g, attention.tensor("value"));
  EXPECT_EQ(g.value(v.base).name, "rotated");
  EXPECT_EQ(v.strides, (std::vector<int64_t>{16 * 96, 8, 96, 1}));
  EXPECT_EQ(v.offset, 80);
  EXPECT_EQ(g.value(attention.tensor("value")).type.strides, v.strides);
}

TEST(Canonical, ActivationsBySpelling) {
  EXPECT_THAT(computing(canonical("silu")), ElementsAre("silu"));
  EXPECT_THAT(computing(canonical("gelu_erf")), testing::Not(testing::Contains("gelu")));
  Graph g = load("gelu_erf");
  g.device = "cuda:0";
  canonicalize(g);
  EXPECT_THAT(computing(g), ElementsAre("gelu"));
  EXPECT_EQ(only(g, "aten.gelu").text("approximate"), "none");
}

TEST(Canonical, AnInnerValueInUseStopsTheRewrite) {
  std::vector<Rewrite> log;
  const Graph g = canonical("gelu_inner_used", &log);
  EXPECT_THAT(log, testing::IsEmpty());
  EXPECT_EQ(g.order.size(), load("gelu_inner_used").order.size());
}

TEST(Canonical, NormsBySpelling) {
  EXPECT_THAT(computing(canonical("softmax")), ElementsAre("softmax"));
  const Graph rms = canonical("rms_norm");
  EXPECT_THAT(computing(rms), ElementsAre("rms_norm"));
  EXPECT_EQ(only(rms, "aten.rms_norm").number("eps"), 1e-6);
  const Graph layer = canonical("layer_norm");
  EXPECT_THAT(computing(layer), ElementsAre("layer_norm"));
  EXPECT_EQ(only(layer, "aten.layer_norm").number("eps"), 1e-5);
  EXPECT_EQ(layer.value(only(layer, "aten.layer_norm").tensor("weight")).target, "weight");
  EXPECT_EQ(layer.value(only(layer, "aten.layer_norm").tensor("bias")).target, "bias");
}

TEST(Canonical, SampleVarianceIsNoLayerNorm) {
  const Graph g = canonical("layer_norm_bessel");
  EXPECT_THAT(computing(g), testing::Not(testing::Contains("layer_norm")));
}

TEST(Canonical, MaskByWhereIsCausalAndScaleOnQueriesIsFolded) {
  const Graph g = canonical("attention_where");
  EXPECT_THAT(computing(g), ElementsAre("scaled_dot_product_attention"));
  EXPECT_EQ(only(g, "aten.scaled_dot_product_attention").flag("is_causal"), true);
  EXPECT_EQ(only(g, "aten.scaled_dot_product_attention").number("scale"), 0.3);
}

TEST(Canonical, AdditiveMaskIsPassedOn) {
  const Graph g = canonical("attention_bias");
  const Node& attention = only(g, "aten.scaled_dot_product_attention");
  EXPECT_EQ(g.value(attention.tensor("attn_mask")).origin, Origin::user_input);
  EXPECT_EQ(attention.flag("is_causal"), false);
  EXPECT_EQ(attention.number("scale"), 0.25);
}

TEST(Canonical, ProductWithWeightAndBiasIsLinear) {
  const Graph g = canonical("linear_bias");
  EXPECT_THAT(computing(g), ElementsAre("linear"));
  EXPECT_TRUE(only(g, "aten.linear").tensor("bias").valid());
}

TEST(Canonical, GatedPairsStayApart) {
  EXPECT_THAT(computing(canonical("gated")), ElementsAre("linear", "silu", "linear", "mul"));
}

TEST(Canonical, QueriesAndKeysAreRotatedTogether) {
  std::vector<Rewrite> log;
  const Graph g = canonical("rotary", &log);
  EXPECT_THAT(computing(g), ElementsAre("cat", "linear", "mul", "neg", "cat", "mul", "add", "cat",
                                        "scaled_dot_product_attention"));
  const auto of = [](const Rewrite& r) { return r.what.starts_with("rotary embedding"); };
  const auto done = std::find_if(log.begin(), log.end(), of);
  ASSERT_NE(done, log.end());
  EXPECT_EQ(done->nodes.size(), 10U);  // five ops each of queries and keys
  const Node& attention = only(g, "aten.scaled_dot_product_attention");
  const ValueId all = *g.find_value("rotated");
  EXPECT_EQ(g.value(all).type.shape.back(), 64);
  int64_t column = 0;
  for (const char* side : {"query", "key", "value"}) {
    const Operand seen = resolve(g, attention.tensor(side));
    EXPECT_EQ(seen.base, all);
    EXPECT_EQ(seen.offset, column);
    EXPECT_EQ(seen.strides[2], 64);
    column += seen.shape[1] * seen.shape[3];
  }
}

TEST(Canonical, RotationsThatDifferOrAreReadBetweenStayApart) {
  const auto rotated = [](Graph g) {
    canonicalize(g);
    return g.find_value("rotated").has_value();
  };
  Graph g = load("rotary");
  EXPECT_TRUE(rotated(g));
  Graph read = g;  // the keys before they are turned
  read.outputs.push_back(*read.find_value("transpose_1"));
  EXPECT_FALSE(rotated(read));
  Graph differ = g;  // the keys by sines alone
  Node& mul = differ.node(*differ.find_node("mul_2"));
  for (auto& [name, argument] : mul.arguments)
    if (name == "other") argument = *differ.find_value("b_sin");
  EXPECT_FALSE(rotated(differ));
  Graph scaled = g;
  for (auto& [name, argument] : scaled.node(*scaled.find_node("add_1")).arguments)
    if (name == "alpha") argument = int64_t{2};
  EXPECT_FALSE(rotated(scaled));
}

TEST(Canonical, EqualHalvesStayEqualThroughWholeRows) {
  const auto json = [](const char* text) { return parse_json(text); };
  Json j = json(
      R"({"schema":"tessera.graph/1","name":"halves","device":"cpu","precision":"fp32","meta":{},
                    "inputs":["angles","buffer","x"],"outputs":[],"mutations":[],"values":[],"nodes":[]})");
  const auto value = [&](const char* name, const Json& shape, const Json& strides,
                         const char* origin) {
    j["values"].push_back({{"name", name},
                           {"dtype", "float32"},
                           {"shape", shape},
                           {"strides", strides},
                           {"origin", origin}});
  };
  const auto node = [&](const char* name, const char* op, const Json& arguments, const Json& shape,
                        const Json& strides) {
    value(name, shape, strides, "node");
    j["nodes"].push_back(
        {{"name", name}, {"op", op}, {"outputs", {name}}, {"arguments", arguments}});
    j["outputs"].push_back(name);
  };
  const auto self = [](const char* name) { return Json{{"self", {{"value", name}}}}; };
  value("angles", {6, 4}, {4, 1}, "user_input");
  value("buffer", {6, 8}, {8, 1}, "user_input");
  value("x", {6, 8}, {8, 1}, "user_input");
  const Json twice = {{"tensors", {{{"value", "angles"}}, {{"value", "angles"}}}}, {"dim", -1}};
  const Json down = {{"tensors", {{{"value", "angles"}}, {{"value", "angles"}}}}, {"dim", 0}};
  node("both", "aten.cat.default", twice, {6, 8}, {8, 1});
  node("cos", "aten.cos.default", self("both"), {6, 8}, {8, 1});
  node("stacked", "aten.cat.default", down, {12, 4}, {4, 1});
  const auto sliced = [&](int dim, int start, int end) {
    Json a = self("cos");
    a.update({{"dim", dim}, {"start", start}, {"end", end}, {"step", 1}});
    return a;
  };
  node("rows", "aten.slice.Tensor", sliced(0, 2, 6), {4, 8}, {8, 1});
  node("part", "aten.slice.Tensor", sliced(1, 0, 6), {6, 6}, {8, 1});
  node("turned", "aten.t.default", self("cos"), {8, 6}, {1, 8});
  Json mixed = self("cos");
  mixed["other"] = {{"value", "x"}};
  node("mixed", "aten.mul.Tensor", mixed, {6, 8}, {8, 1});
  Json scaled = self("rows");
  scaled["other"] = 0.5;
  node("scaled", "aten.mul.Tensor", scaled, {4, 8}, {8, 1});
  node("sum", "aten.cumsum.default", Json{{"self", {{"value", "cos"}}}, {"dim", 1}}, {6, 8},
       {8, 1});
  auto g = graph::import_graph(j);
  ASSERT_TRUE(g.has_value()) << to_text(g.error());
  canonicalize(*g);
  const auto equal = [&](const char* name) {
    return g->value(*g->find_value(name)).facts.contains("halves_equal");
  };
  for (const char* name : {"both", "cos", "rows", "scaled"}) EXPECT_TRUE(equal(name)) << name;
  for (const char* name : {"angles", "stacked", "part", "turned", "mixed", "sum"})
    EXPECT_FALSE(equal(name)) << name;
}

TEST(Canonical, NoopsGo) {
  const Graph g = canonical("noops");
  EXPECT_EQ(g.order.size(), 1U);
}

TEST(Canonical, ASecondRunChangesNothing) {
  for (const char* name : {"minigpt", "llama_written", "attention_bias", "layer_norm", "rotary"}) {
    Graph g = canonical(name);
    const std::string text = to_text(g);
    EXPECT_THAT(canonicalize(g), testing::IsEmpty()) << name;
    EXPECT_EQ(to_text(g), text);
  }
}

}  // namespace
}  // namespace tessera::rewrite
