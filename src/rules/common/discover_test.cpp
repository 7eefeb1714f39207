// Golden discoveries of whole blocks, and what every pattern must keep.
#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "arch/arch.h"
#include "base/files.h"
#include "base/source_folder.h"
#include "rules/attention.h"
#include "rules/common/examples.h"
#include "rules/common/testing.h"
#include "rules/gated_mlp.h"
#include "rules/gemm.h"

#include "rewrite/canonical.h"

namespace tessera::rules {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const arch::Arch& hopper() {
  return **arch::find("sm_90a");
}

graph::Graph fixture(const std::string& name) {
  const std::string path = fmt::format("{}/src/rules/testdata/{}.json", source_folder(), name);
  auto g = graph::import_graph(parse_json(read_file(path)));
  if (!g) throw std::runtime_error(to_text(g.error()));
  rewrite::canonicalize(*g);
  return std::move(*g);
}

std::vector<std::string> summaries(const Discovery& d, std::string_view rule) {
  std::vector<std::string> out;
  for (const Pattern& p : of_rule(d, rule)) out.push_back(p.summary);
  return out;
}

TEST(Discover, MiniGptBlock) {
  const graph::Graph g = fixture("minigpt");
  const Discovery d = discover(g, hopper());
  EXPECT_THAT(summaries(d, "attention"), ::testing::ElementsAre("8x8 256->256 d64 bf16, causal"));
  EXPECT_THAT(
      summaries(d, "gemm"),
      ::testing::UnorderedElementsAre(
          "2048x2048x512 bf16, + bias, gelu", "2048x512x512 bf16, + bias, add",
          "2048x512x2048 bf16, + bias, add", "2048x2048x512 bf16, + bias",
          "2048x512x2048 bf16, + bias", "2048x1536x512 bf16, + bias", "2048x512x512 bf16, + bias"));
  EXPECT_THAT(
      summaries(d, "row_norm"),
      ::testing::UnorderedElementsAre(
          "layer_norm 2048x512 bf16, weight and bias", "layer_norm 2048x512 bf16, weight and bias",
          "layer_norm 2048x512 bf16, weight and bias, with add, 2 outputs"));
  EXPECT_TRUE(d.uncovered.empty());
}

TEST(Discover, LlamaBlocksOfBothSpellings) {
  for (const char* name : {"llama", "llama_written"}) {
    const graph::Graph g = fixture(name);
    const Discovery d = discover(g, hopper());
    EXPECT_THAT(summaries(d, "attention"),
                ::testing::ElementsAre("1x32/8 2048->2048 d128 bf16, causal"))
        << name;
    EXPECT_THAT(summaries(d, "gated_mlp"),
                ::testing::ElementsAre("2 of 2048x14336x4096 bf16, silu, mul"))
        << name;
    // Queries and keys are rotated together, beside their product (by 8 of 48 heads) or in it.
    EXPECT_THAT(summaries(d, "pointwise"),
                ::testing::Contains("[2048,8,64] bf16: mul, neg, mul, add, 2 copies"))
        << name;
    EXPECT_THAT(summaries(d, "gemm"), ::testing::Contains(::testing::EndsWith("in 2 parts")))
        << name;
    EXPECT_EQ(of_rule(d, "row_norm").size(), 3u) << name;
    EXPECT_TRUE(d.uncovered.empty()) << name;
  }
}

TEST(Discover, AttentionReadsSlicesOfOneProjection) {
  const graph::Graph g = fixture("minigpt");
  const Pattern p = of_rule(discover(g, hopper()), "attention").at(0);
  EXPECT_EQ(p.inputs.size(), 1u);
  const auto& body = dynamic_cast<const AttentionBody&>(*p.body);
  EXPECT_EQ(body.k.offset, 512);
  EXPECT_EQ(body.v.offset, 1024);
  // The result goes straight to [batch, length, heads * dim].
  EXPECT_THAT(body.output.strides, ::testing::ElementsAre(256 * 512, 64, 512, 1));
  EXPECT_EQ(g.value(p.outputs.at(0)).type.shape, (Shape{8, 256, 512}));
}

TEST(Discover, EqualLayersHaveEqualSignatures) {
  GraphBuilder b;
  const ValueId first = transformer_block(b, b.input("x", {2, 64, 128}), 4);
  b.output(transformer_block(b, first, 4));
  std::map<std::string, int> count;
  for (const Pattern& p : discover(b.g, hopper()).patterns) {
    if (p.rule == "gemm" || p.rule == "attention") ++count[p.signature()];
  }
  for (const auto& [signature, n] : count) EXPECT_EQ(n % 2, 0) << signature;
}

TEST(Discover, OrderedByGainAndAboveTheFloor) {
  const graph::Graph g = fixture("llama");
  const Discovery d = discover(g, hopper());
  for (std::size_t i = 0; i < d.patterns.size(); ++i) {
    const Pattern& p = d.patterns[i];
    EXPECT_GT(p.floor_ms, 0);
    EXPECT_GE(p.unfused_ms, p.floor_ms * 0.999) << p.summary;
    EXPECT_GT(p.min_bytes, 0);
    if (i > 0) {
      EXPECT_LE(p.priority, d.patterns[i - 1].priority);
    }
  }
}

TEST(Discover, OpaqueOpsAreListed) {
  GraphBuilder b;
  const ValueId y = b.call("custom.mystery.default", {{"self", b.input("x", {4, 4})}}, {4, 4});
  b.output(y);
  const Discovery d = discover(b.g, hopper());
  ASSERT_EQ(d.uncovered.size(), 1u);
  EXPECT_THAT(d.uncovered[0].second, HasSubstr("no rule takes `custom.mystery`"));
  EXPECT_THAT(to_table(b.g, d), HasSubstr("left to PyTorch"));
}

TEST(Discover, NotesBeginALineBehindChallenges) {
  const graph::Graph g = fixture("llama");
  Discovery d = discover(g, hopper());
  ASSERT_TRUE(std::any_of(d.patterns.begin(), d.patterns.end(),
                          [](const Pattern& p) { return !p.challenges.empty(); }));
  d.uncovered.clear();
  d.rejections.clear();
  d.notes = {"a note"};
  EXPECT_THAT(to_table(g, d), HasSubstr("\nnote: a note\n"));
}

TEST(Discover, JsonCarriesTheRecord) {
  const graph::Graph g = fixture("minigpt");
  const Json j = to_json(g, discover(g, hopper()));
  EXPECT_EQ(j["schema"], "tessera.discovery/1");
  const Json& p = j["patterns"][0];
  for (const char* key : {"id", "name", "subgraph", "operations", "rule", "dtype", "reuse",
                          "examples", "priority", "input_shapes", "expected_challenges",
                          "rationale", "floor_ms", "unfused_ms", "signature", "body"})
    EXPECT_TRUE(p.contains(key)) << key;
  for (const char* key : {"strategy", "existing", "adaptations"})
    EXPECT_TRUE(p["reuse"].contains(key)) << key;
  EXPECT_EQ(j["arch"], "sm_90a");
  EXPECT_EQ(j["model"], g.name);
  EXPECT_EQ(j["created"].get<std::string>().size(), std::string("2026-01-01T00:00:00Z").size());
  EXPECT_EQ(j["order"].size(), j["patterns"].size());
  EXPECT_EQ(p["reuse"]["strategy"], "NEW");
  EXPECT_EQ(j["order"][0], p["id"]);
}

ValueId product(GraphBuilder& b, ValueId x, ValueId y, Shape shape) {
  return b.call("aten.matmul.default", {{"self", x}, {"other", y}}, std::move(shape));
}

TEST(Discover, NearAttentionSaysWhatStandsInTheWay) {
  GraphBuilder b;
  const ValueId q = b.input("q", {2, 4, 8, 16});
  const ValueId kt = b.input("kt", {2, 4, 16, 8});
  const ValueId scores = product(b, q, kt, {2, 4, 8, 8});
  const ValueId capped = b.unary("sin", scores);
  const auto softmax = [&](ValueId x) {
    return b.call("aten.softmax.int", {{"self", x}, {"dim", int64_t{-1}}}, {2, 4, 8, 8});
  };
  const ValueId weights = softmax(scores);
  const ValueId v = b.input("v", {2, 4, 8, 16});
  const ValueId soft = product(b, softmax(capped), v, {2, 4, 8, 16});
  const ValueId kept = product(b, weights, v, {2, 4, 8, 16});
  for (const ValueId out : {soft, kept, weights}) b.output(out);
  const Discovery d = discover(b.g, hopper());
  EXPECT_TRUE(rejected(d.rejections, b.node(soft), "changes the scores"));
  EXPECT_TRUE(rejected(d.rejections, b.node(kept), "need_weights=False"));
  const Json j = to_json(b.g, d);
  EXPECT_FALSE(j["rejections"].empty());
}

TEST(Discover, WhatIsLeftSaysWhatToDo) {
  GraphBuilder b;
  const ValueId x = b.input("x", {64, 4096});
  const ValueId dropped =
      b.call("aten.dropout.default", {{"input", x}, {"p", 0.5}, {"train", true}}, {64, 4096});
  b.output(dropped);
  const Discovery d = discover(b.g, hopper());
  ASSERT_EQ(d.uncovered.size(), 1u);
  EXPECT_THAT(d.uncovered[0].second, HasSubstr(".eval()"));
}

TEST(Discover, NeighboursThatNoRuleTakesAreSuggestedAsOneProposal) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4, 64, 32});
  const ValueId scan = b.call("aten.cumsum.default", {{"self", x}, {"dim", 1}}, {4, 64, 32});
  const ValueId flip =
      b.call("aten.flip.default", {{"self", scan}, {"dims", ints({1})}}, {4, 64, 32});
  b.output(b.binary("mul", flip, x));
  const ValueId apart = b.call("aten.cumprod.default", {{"self", x}, {"dim", 1}}, {4, 64, 32});
  b.output(b.linear(apart, 8));
  const Discovery d = discover(b.g, hopper());
  ASSERT_EQ(d.proposable.size(), 1u) << "one alone is no group, and a product is in none";
  const Json names = to_json(b.g, d)["proposable"][0];
  EXPECT_EQ(names, Json::parse(R"(["cumsum", "flip", "mul"])")) << names;
  EXPECT_THAT(to_table(b.g, d), HasSubstr(R"(["cumsum","flip","mul"])"));
}

TEST(Examples, FoundByRulePrecisionAndArch) {
  const ExampleIndex index(std::filesystem::path(source_folder()) / "knowledge" / "examples");
  EXPECT_TRUE(index.notes().empty());
  ASSERT_FALSE(index.find("gated_mlp", Precision::bf16, "sm_80").empty());
  EXPECT_THAT(index.find("gated_mlp", Precision::bf16, "sm_80")[0], HasSubstr("45_dual_gemm"));
  EXPECT_TRUE(index.find("attention", Precision::tf32, "sm_90a").empty());
}

TEST(Examples, AMissingIndexIsANote) {
  const ExampleIndex index("/nonexistent");
  EXPECT_TRUE(index.empty());
  ASSERT_EQ(index.notes().size(), 1u);
  EXPECT_THAT(index.notes()[0], HasSubstr("TESSERA_KNOWLEDGE"));
}

TEST(Discover, KernelsHaveTensorsOfOneDevice) {
  for (const char* device : {"", "cpu"}) {
    GraphBuilder b;
    const ValueId x = b.input("x", {64, 128});
    const ValueId scale = b.input("scale", {});
    b.g.value(scale).device = device;
    const ValueId scaled = b.call("aten.mul.Tensor", {{"self", x}, {"other", scale}}, {64, 128});
    b.output(b.gelu(scaled));
    const Discovery d = discover(b.g, hopper());
    const bool takes = std::any_of(d.patterns.begin(), d.patterns.end(), [&](const Pattern& p) {
      return std::find(p.inputs.begin(), p.inputs.end(), scale) != p.inputs.end();
    });
    EXPECT_EQ(takes, *device == 0);
    const bool told = std::any_of(d.rejections.begin(), d.rejections.end(), [](const Rejection& r) {
      return r.reason == "`scale` is on cpu, not on cuda:0";
    });
    EXPECT_EQ(told, *device != 0);
  }
}

}  // namespace
}  // namespace tessera::rules
