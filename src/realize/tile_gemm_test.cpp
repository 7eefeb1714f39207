#include <gmock/gmock.h>
#include <iterator>
#include <set>

#include "base/thorough.h"
#include "realize/common/tile_gemm_kernel.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<Space> space_of(const char* problem) {
  for (const Realizer* r : all()) {
    if (r->name != "tile_gemm") continue;
    return r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                      **arch::find("sm_90a"));
  }
  ADD_FAILURE() << "no realizer";
  return Space{};
}

Space expect_space(const char* problem) {
  auto s = space_of(problem);
  EXPECT_TRUE(s) << to_text(s.error());
  return s ? std::move(*s) : Space{};
}

GemmProblem problem_of(const char* text) {
  const rules::Pattern pattern = testing::pattern_of(parse_json(text));
  const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
  auto p = gemm_problem(*body, pattern.precision);
  EXPECT_TRUE(p) << to_text(p.error());
  return *p;
}

constexpr const char* square = R"({"m":4096,"n":4096,"k":4096})";
constexpr const char* fused =
    R"({"m":520,"n":264,"k":136,"batch":3,"epilogue":"bias_residual","b_major":"n"})";

TEST(TileGemm, AnEpilogueIsAFunctionWithTensorsOfItsOwn) {
  const auto text = epilogue_function(problem_of(fused));
  ASSERT_TRUE(text) << to_text(text.error());
  EXPECT_EQ(*text, R"(

def epilogue(
    x,
    batch,
    m,
    n,
    X0_BATCH: index(multiple=8, at_least=0, below=1 << 38),
    X0: Tensor[bf16, "L", 1, "N", strides("X0_BATCH", 16, 1)],
    X1_BATCH: index(multiple=8, at_least=0, below=1 << 38),
    X1_STRIDE: index(multiple=8, at_least=0, below=1 << 31),
    X1: Tensor[bf16, "L", "M", "N", strides("X1_BATCH", "X1_STRIDE", 1)],
):
    x0 = load(X0[batch.index, part(0, 1), n], like=x)
    x1 = load(X1[batch.index, m, n], like=x)
    t2 = (x + x0)
    t4 = (t2 + x1)
    return t4
)");
}

TEST(TileGemm, TheMeaningIsThePatterns) {
  EXPECT_EQ(meaning_of(problem_of(fused)),
            "C[b, i, j] = ((sum(A[b, i, k] * B[b, j, k], k) + X0[b, 0, j]) + X1[b, i, j])");
  EXPECT_EQ(meaning_of(problem_of(square)), "C[i, j] = sum(A[i, k] * B[j, k], k)");
}

TEST(TileGemm, OneTextServesAllShapesOfOneKind) {
  std::set<std::string> texts;
  for (const Candidate& c : expect_space(R"({"m":2048,"n":4096,"k":4096})").candidates)
    texts.insert(c.source->text);
  int shared = 0;
  for (const Candidate& c : expect_space(R"({"m":8192,"n":6144,"k":1024})").candidates)
    shared += texts.contains(c.source->text) ? 1 : 0;
  EXPECT_GT(shared, 5);
}

TEST(TileGemm, WhatTmaCannotStoreLeavesFromRegisters) {
  for (const char* problem :
       {R"({"m":67,"n":70,"k":136})", R"({"m":256,"n":262,"k":136,"out_dtype":"float32"})"}) {
    const Candidate c = expect_space(problem).candidates.front();
    EXPECT_EQ(c.config["epilogue"], "registers") << problem;
    EXPECT_THAT(c.source->text, Not(HasSubstr("cp.async.bulk.tensor.2d.global.shared"))) << problem;
  }
  EXPECT_EQ(expect_space(square).candidates.front().config["epilogue"], "tma");
}

/// Buffers for them may take a slot of the ring: then both ways are offered.
TEST(TileGemm, ResultsOf32BitsLeaveByTmaOrKeepASlot) {
  std::map<std::string, std::map<std::string, int>> stages;  // by tile and schedule, by the way
  for (const Candidate& c :
       expect_space(R"({"m":8192,"n":4096,"k":1024,"dtype":"float32","precision":"tf32"})")
           .candidates) {
    Json form = c.config;
    form.erase("epilogue");
    form.erase("stages");
    stages[form.dump()][c.config["epilogue"]] = c.config["stages"];
    EXPECT_EQ(c.label().ends_with(" from registers"), c.config["epilogue"] == "registers");
  }
  int both = 0;
  for (const auto& [form, ways] : stages) {
    EXPECT_TRUE(ways.contains("tma") || ways.at("registers") == 3) << form;
    if (ways.size() < 2) continue;
    EXPECT_GT(ways.at("registers"), ways.at("tma")) << form;
    ++both;
  }
  EXPECT_GT(both, 0);
}

TEST(TileGemm, SaysWhatItLeavesToOthers) {
  for (const char* problem :
       {R"({"m":512,"n":512,"k":512,"a_major":"m","b_major":"n","dtype":"float32",
            "precision":"tf32"})",
        R"({"m":260,"n":512,"k":136,"dtype":"float32","precision":"fp32","epilogue":"bias_rotary",
            "rotated":384,"head_dim":64,"positions":65})",
        R"({"m":512,"n":512,"k":512,"epilogue":"rotary","rotated":384,"head_dim":8})"}) {
    const auto s = space_of(problem);
    ASSERT_FALSE(s) << problem;
    EXPECT_EQ(s.error().code, "TS0410") << problem;
  }
}

// Every candidate, not the first alone: what is refuted or undecided would never be built.
TEST(TileGemm, EveryCandidateIsProved) {
  const char* problems[] = {
      fused,
      R"({"m":264,"n":520,"k":136,"b_major":"n","dtype":"float32","precision":"tf32",
          "epilogue":"bias_residual"})",
      R"({"m":272,"n":144,"k":80,"epilogue":"bias_gelu","dtype":"float8_e4m3fn","precision":"fp8",
          "out_dtype":"bfloat16"})",
      // Those that ./dev test all asks for.
      R"({"m":67,"n":70,"k":136,"epilogue":"bias_residual"})",
      R"({"m":520,"n":264,"k":136,"dtype":"float32","precision":"tf32","epilogue":"bias_residual"})",
      square, R"({"m":520,"n":264,"k":136,"a_major":"m","epilogue":"column_scale"})",
      R"({"m":392,"n":200,"k":328,"d_major":"m","epilogue":"bias"})",
      R"({"m":264,"n":136,"k":200,"dtype":"float16","epilogue":"bias_gelu"})",
      R"({"m":520,"n":264,"k":136,"batch":3,"epilogue":"bias_silu_saved"})"};
  const bool all = thorough();
  // Each takes a tenth of a second: one in thirty, another one for each problem.
  const std::size_t step = all ? 1 : 30, most = all ? std::size(problems) : 2;
  for (std::size_t which = 0; which < most; ++which) {
    const Space s = expect_space(problems[which]);
    for (std::size_t i = which % step; i < s.candidates.size(); i += step) {
      const Candidate& c = s.candidates[i];
      const auto proof = c.source->prove();
      EXPECT_TRUE(proof) << problems[which] << " " << c.label() << " " << to_text(proof.error());
    }
  }
}

/// Sums of 8-bit products that are so long that verification refuses them are promoted; a few that
/// are not come last, for modules that sum so themselves.
TEST(TileGemm, LongSumsOfEightBitsArePromoted) {
  const char* problem =
      R"({"m":4096,"n":4096,"k":4096,"dtype":"float8_e4m3fn","precision":"fp8",
          "out_dtype":"bfloat16","epilogue":"bias_gelu"})";
  const Space s = expect_space(problem);
  ASSERT_EQ(s.candidates.size(), 16U);
  for (std::size_t i = 0; i < s.candidates.size(); ++i)
    EXPECT_EQ(s.candidates[i].config.contains("promote"), i < 12) << s.candidates[i].label();
  const bool all = thorough();
  for (std::size_t i = 0; i < (all ? s.candidates.size() : 1); ++i) {
    const auto proof = s.candidates[i].source->prove();
    EXPECT_TRUE(proof) << s.candidates[i].label() << " " << to_text(proof.error());
  }
  testing::expect_compiles(*s.candidates.front().source);
  const char* shorter =
      R"({"m":4096,"n":4096,"k":256,"dtype":"float8_e4m3fn","precision":"fp8",
          "out_dtype":"bfloat16"})";
  for (const auto& [config, ms] :
       tile_gemm_configs(problem_of(shorter), **arch::find("sm_90a")).configs)
    EXPECT_EQ(config.promote, 0);
}

TEST(TileGemm, WhereBlocksHaveSeveralTilesTwoRolesMayTakeThemByTurns) {
  const auto by_turns = [](const char* problem) {
    std::vector<Candidate> out;
    for (Candidate& c : expect_space(problem).candidates)
      if (c.config["schedule"] == "pingpong") out.push_back(std::move(c));
    return out;
  };
  const std::vector<Candidate> found =
      by_turns(R"({"m":65536,"n":3072,"k":768,"epilogue":"bias_gelu"})");
  ASSERT_GT(found.size(), 3U);
  for (const Candidate* c : {&found.front(), &found.back()}) {
    const auto proof = c->source->prove();
    EXPECT_TRUE(proof) << c->label() << " " << to_text(proof.error());
  }
  int square_tiles = 0;
  for (const Candidate& c : found) {
    EXPECT_EQ(c.config["tile"][0], c.config["warpgroup_rows"]);  // a role is one warpgroup
    if (c.config["tile"][0] != 128 || c.config["tile"][1] != 128) continue;
    EXPECT_EQ(c.config["stages"], 6);
    ++square_tiles;
  }
  EXPECT_GT(square_tiles, 0);
  testing::expect_compiles(*found.front().source);
  EXPECT_TRUE(by_turns(R"({"m":520,"n":264,"k":136})").empty());
}

/// wgmma reads 4-byte elements along k only.
TEST(TileGemm, Tf32ThatLiesOtherwiseComesThroughRegisters) {
  const auto turned = [](const std::string& majors) {
    std::set<bool> out;
    const std::string problem =
        R"({"m":4096,"n":2048,"k":1024,)" + majors + R"("dtype":"float32","precision":"tf32"})";
    for (const Candidate& c : expect_space(problem.c_str()).candidates) {
      EXPECT_EQ(c.config["mainloop"], "registers");
      EXPECT_THAT(c.source->text, HasSubstr("wgmma_f32_tf32_tf32_rs"));
      EXPECT_EQ(c.config["cluster"][1], 1);
      out.insert(c.config["transposed"].get<bool>());
    }
    return out;
  };
  EXPECT_EQ(turned(R"("b_major":"n",)"), std::set<bool>{true});
  EXPECT_EQ(turned(R"("a_major":"m",)"), std::set<bool>{false});
}

/// TMA stores float32, by columns too; results of 16 bits would want other buffers.
TEST(TileGemm, ResultsOfProductsThroughRegistersLeaveByTma) {
  const auto first = [](const std::string& more) {
    const std::string problem =
        R"({"m":4096,"n":2048,"k":1024,"b_major":"n","dtype":"float32","precision":"tf32")" + more +
        "}";
    return expect_space(problem.c_str()).candidates.front();
  };
  EXPECT_EQ(first("").config["epilogue"], "tma");
  EXPECT_THAT(first("").source->text, HasSubstr("tma_store_2(&C_map"));
  EXPECT_EQ(first(R"(,"out_dtype":"bfloat16")").config["epilogue"], "registers");
}

/// Neighbours of a line are fetched with it, but of operands that do not stay in the cache.
TEST(TileGemm, LargeOperandsAreFetchedByTheLine) {
  const auto fetched = [](const std::string& problem) {
    const Candidate c = expect_space(problem.c_str()).candidates.front();
    return c.source->text.find("L2_PROMOTION_L2_128B") != std::string::npos ? 128 : 256;
  };
  EXPECT_EQ(fetched(R"({"m":4096,"n":2048,"k":1024})"), 256);
  EXPECT_EQ(fetched(R"({"m":512,"n":1024,"k":2048,"batch":128})"), 128);
  EXPECT_EQ(fetched(R"({"m":65536,"n":1024,"k":1024})"), 128);
}

TEST(TileGemm, Float32IsTakenApart) {
  const char* problem = R"({"m":260,"n":132,"k":100,"batch":2,"a_major":"m","b_major":"n",
                            "dtype":"float32","precision":"fp32","epilogue":"bias_gelu"})";
  const Space s = expect_space(problem);
  std::set<int> columns;
  for (const Candidate& c : s.candidates) {
    EXPECT_EQ(c.config["mainloop"], "split_divided") << c.label();
    EXPECT_EQ(c.config["promote"], 4) << c.label();
    columns.insert(c.config["tile"][1].get<int>());
  }
  EXPECT_EQ(columns, (std::set<int>{64, 96, 128}));
  const auto proof = s.candidates.front().source->prove();
  EXPECT_TRUE(proof) << to_text(proof.error());
  testing::expect_compiles(*s.candidates.front().source);
}

TEST(TileGemm, Compiles) {
  for (const char* problem : {square, fused}) {
    const Space s = expect_space(problem);
    testing::expect_compiles(*s.candidates.front().source);
  }
}

}  // namespace
}  // namespace tessera::realize
