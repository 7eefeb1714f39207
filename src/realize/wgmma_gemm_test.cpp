#include <gmock/gmock.h>
#include <set>

#include "base/thorough.h"
#include "realize/common/wgmma_library.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

Result<Space> space_of(const char* problem, std::string_view name = "wgmma_gemm") {
  for (const Realizer* r : all()) {
    if (r->name != name) continue;
    return r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                      **arch::find("sm_90a"));
  }
  ADD_FAILURE() << "no realizer " << name;
  return Space{};
}

Space expect_space(const char* problem, std::string_view name = "wgmma_gemm") {
  auto s = space_of(problem, name);
  EXPECT_TRUE(s) << to_text(s.error());
  return s ? std::move(*s) : Space{};
}

/// The candidate of a tile and schedule, wherever it stands; the last one of the space without it.
const Candidate& with(const Space& s, const std::vector<int>& tile, const char* schedule) {
  for (const Candidate& c : s.candidates)
    if (c.config["tile"] == Json(tile) && c.config["schedule"] == schedule) return c;
  ADD_FAILURE() << "no " << Json(tile).dump() << " " << schedule;
  return s.candidates.back();
}

constexpr const char* square = R"({"m":4096,"n":4096,"k":4096})";
constexpr const char* fp32 =
    R"({"m":4096,"n":4096,"k":4096,"dtype":"float32","precision":"fp32","epilogue":"bias"})";

TEST(WgmmaGemm, BuildsWithoutCutlass) {
  for (const char* problem : {square, fp32}) {
    for (const Candidate& c : expect_space(problem).candidates) {
      EXPECT_FALSE(c.source->cutlass);
      EXPECT_THAT(c.source->text, HasSubstr("#define TESSERA_SIDES_APART 1"));
      EXPECT_THAT(c.source->text, Not(HasSubstr("#include <cut")));
      EXPECT_EQ(c.workspace_bytes, 0);
    }
  }
}

// Measured as the fastest on an H200, and within 1 % of it.
TEST(WgmmaGemm, PutsTheMeasuredWinnersFirst) {
  const auto within = [](const Space& s, std::size_t first, const std::vector<int>& tile) {
    for (std::size_t i = 0; i < std::min(first, s.candidates.size()); ++i)
      if (s.candidates[i].config["tile"] == Json(tile)) return true;
    return false;
  };
  EXPECT_TRUE(within(expect_space(square), 3, {128, 128, 64}));
  EXPECT_TRUE(within(expect_space(R"({"m":2048,"n":6144,"k":4096})"), 6, {128, 256, 64}));
  EXPECT_TRUE(within(expect_space(fp32), 1, {128, 128, 16}));
  EXPECT_TRUE(within(
      expect_space(R"({"m":2048,"n":14336,"k":4096,"epilogue":"gated_silu"})", "wgmma_gated"), 4,
      {128, 128, 64}));
}

TEST(WgmmaGemm, EveryConfigurationFitsIntoSharedMemory) {
  const arch::Arch& arch = **arch::find("sm_90a");
  for (const char* problem : {square, fp32}) {
    for (const Candidate& c : expect_space(problem).candidates) {
      const int64_t columns = c.config["tile"][1].get<int64_t>();
      const int64_t both = c.config["tile"][0].get<int64_t>() + columns;
      const bool split = c.config.contains("mainloop");
      const int64_t result = split ? 4 : 2;
      const int64_t stage = both * (split ? 16 * 4 : 64 * 2);
      const int64_t stages = c.config["stages"].get<int64_t>();
      const int64_t packed = split ? 3 * columns * 128 : 0;  // of B: A's parts are in registers
      const int64_t used =
          stages * stage + packed + int64_t{2} * 2 * 64 * 32 * result + 2 * stages * 8;
      EXPECT_LE(used, arch.shared_memory_per_block) << c.label();
      EXPECT_GE(stages, split ? 2 : 3) << c.label();
    }
  }
}

TEST(WgmmaGemm, OneTextServesAllShapesOfOneKind) {
  const Space q = expect_space(R"({"m":2048,"n":4096,"k":4096})");
  const Space o = expect_space(R"({"m":8192,"n":6144,"k":1024})");
  std::set<std::string> texts;
  for (const Candidate& c : q.candidates) texts.insert(c.source->text);
  int shared = 0;
  for (const Candidate& c : o.candidates) shared += texts.contains(c.source->text) ? 1 : 0;
  EXPECT_GT(shared, 10);
}

TEST(WgmmaGemm, NMajorWeightsComeInWholeBlocks) {
  for (const Candidate& c :
       expect_space(R"({"m":4096,"n":4096,"k":4096,"b_major":"n"})").candidates) {
    EXPECT_EQ(c.config["tile"][1].get<int>() % 64, 0) << c.label();
    if (c.config["cluster"] != Json({2, 1})) continue;
    EXPECT_EQ(c.config["tile"][1].get<int>() % 128, 0) << c.label();
  }
}

TEST(WgmmaGemm, AColumnMajorResultIsTheTransposedProduct) {
  const Space s = expect_space(R"({"m":392,"n":200,"k":328,"d_major":"m","epilogue":"bias"})");
  const Candidate& c = s.candidates.front();
  EXPECT_EQ(c.config["transposed"], true);
  // m and n are exchanged, and the bias is a value of each row.
  EXPECT_EQ(c.launches.front().ints.at(0), 200);
  EXPECT_EQ(c.launches.front().ints.at(1), 392);
  EXPECT_THAT(c.source->text,
              HasSubstr("v.x0 = tessera_wgmma::one<__nv_bfloat16>(p.x[0], batch, row, inside)"));
}

TEST(WgmmaGemm, SaysWhatItLeavesToOthers) {
  for (
      const char* problem :
      {R"({"m":512,"n":512,"k":512,"b_major":"n","dtype":"float32","precision":"tf32"})",
       R"({"m":67,"n":70,"k":130})",
       R"({"m":512,"n":512,"k":512,"dtype":"float8_e4m3fn","precision":"fp8","out_dtype":"bfloat16"})",
       R"({"m":512,"n":512,"k":512,"epilogue":"rotary","rotated":384,"head_dim":8})"}) {
    const auto s = space_of(problem);
    ASSERT_FALSE(s) << problem;
    EXPECT_EQ(s.error().code, "TS0410") << problem;
  }
}

constexpr const char* tf32 =
    R"({"m":4096,"n":4096,"k":4096,"dtype":"float32","precision":"tf32","epilogue":"bias"})";

TEST(WgmmaGemm, Tf32IsReadAsItLies) {
  const Space s = expect_space(tf32);
  for (const Candidate& c : s.candidates) {
    EXPECT_EQ(c.config["tile"][2], 32);
    EXPECT_THAT(c.source->text, HasSubstr("k8.f32.tf32.tf32"));
    EXPECT_THAT(c.source->text, HasSubstr("element_bytes = 4, depth = 32"));
  }
  // 4 bytes an element, of a depth of half as many: the stages of 16-bit operands.
  EXPECT_EQ(with(s, {128, 256, 32}, "cooperative").config["stages"], 4);
  EXPECT_FALSE(space_of(R"({"m":512,"n":512,"k":512,"a_major":"m","dtype":"float32",
                            "precision":"tf32"})"));
}

TEST(WgmmaGemm, Tf32Compiles) {
  const Space s = expect_space(tf32);
  testing::expect_compiles(*with(s, {128, 256, 32}, "cooperative").source);
  testing::expect_compiles(*with(s, {128, 128, 32}, "pingpong").source);
  testing::expect_host_side_compiles(*s.candidates.front().source);
  const Space pair = expect_space(
      R"({"m":512,"n":1024,"k":512,"dtype":"float32","precision":"tf32","epilogue":"gated_silu"})",
      "wgmma_gated");
  testing::expect_compiles(*with(pair, {128, 128, 32}, "cooperative").source);
}

constexpr const char* llama =
    R"({"m":2048,"n":6144,"k":4096,"epilogue":"rotary","rotated":5120,"head_dim":128})";

TEST(WgmmaParts, EveryTileHoldsWholeGroupsOfOnePart) {
  const Space s = expect_space(llama);
  for (const Candidate& c : s.candidates) {
    EXPECT_EQ(int(c.config["tile"][1]) % 128, 0);
    EXPECT_EQ(c.config["columns"], "parts");
  }
  EXPECT_THAT(s.pruned, Contains(Pair("a tile cuts a group of columns", _)));
  // Keys end within a tile of 256 columns.
  const Space odd = expect_space(
      R"({"m":2048,"n":640,"k":4096,"epilogue":"rotary","rotated":384,"head_dim":128})");
  for (const Candidate& c : odd.candidates) EXPECT_EQ(c.config["tile"][1], 128);
  EXPECT_THAT(odd.pruned, Contains(Pair("a tile lies in two parts", _)));
}

TEST(WgmmaParts, TheTextServesEveryProblemOfTheseTypes) {
  const Candidate c = expect_space(llama).candidates.front();
  EXPECT_THAT(c.source->text, HasSubstr("tessera_wgmma::TwoOf<__nv_bfloat16>::Type x3;"));
  // Both halves of a table are read through one pointer.
  EXPECT_THAT(c.source->text,
              HasSubstr("place<__nv_bfloat16, false>(p.y[1], row, 0, column + period / 2)"));
  EXPECT_THAT(c.source->text, Not(HasSubstr("Part1")));  // the values' columns are as they are
  EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
  const auto& ints = c.launches.front().ints;
  EXPECT_EQ(std::vector<int64_t>(ints.begin() + 18, ints.end()),
            (std::vector<int64_t>{0, 5120, 2, 0, 128, 0, 2048, 3, 0, 128, 0, 2048}));
  const Space longer = expect_space(
      R"({"m":4096,"n":3072,"k":2048,"epilogue":"rotary","rotated":2048,"head_dim":128})");
  std::vector<std::string> texts;
  for (const Candidate& x : longer.candidates) texts.push_back(x.source->text);
  EXPECT_THAT(texts, Contains(c.source->text));
}

TEST(WgmmaParts, TablesRepeatAndBiasesDifferByHead) {
  const Space s = expect_space(R"({"m":2048,"n":512,"k":512,"epilogue":"bias_rotary","rotated":384,
                                   "head_dim":64,"positions":512})");
  const std::string& text = s.candidates.front().source->text;
  EXPECT_THAT(text, HasSubstr("place<__nv_bfloat16, true>(p.y[1], row, 0, column)"));  // a table
  EXPECT_THAT(text, HasSubstr("place<__nv_bfloat16, false>(p.y[0], row, group, column)"));  // bias
  EXPECT_THAT(text, HasSubstr("apply_part<Config, Part1>"));
}

TEST(WgmmaParts, Compiles) {
  struct Form {
    const char* problem;
    std::vector<int> tile;
    const char* schedule;
    int spilled = 0;
  };
  constexpr const char* scaled =
      R"({"m":2048,"n":6144,"k":4096,"epilogue":"scaled_rotary","rotated":5120,"head_dim":128})";
  constexpr const char* biased = R"({"m":2048,"n":1024,"k":512,"epilogue":"bias_rotary",
      "rotated":768,"head_dim":64,"positions":512,"dtype":"float16"})";
  constexpr const char* exact = R"({"m":2048,"n":6144,"k":4096,"epilogue":"rotary",
      "rotated":5120,"head_dim":64,"dtype":"float32","precision":"fp32"})";
  // Both tables and a bias of each head beside 128 accumulators: some addresses lie in memory
  // between the mainloop and the stores.
  const Form forms[] = {{llama, {128, 256, 64}, "cooperative"},
                        {biased, {128, 128, 64}, "pingpong", 64},
                        // Those that ./dev test all asks for: each takes five seconds.
                        {llama, {128, 128, 64}, "pingpong"},
                        {scaled, {128, 256, 64}, "cooperative"},
                        {scaled, {128, 128, 64}, "pingpong"},
                        {biased, {128, 128, 64}, "cooperative"},
                        {exact, {128, 128, 16}, "cooperative"}};
  for (std::size_t i = 0; i < (thorough() ? std::size(forms) : 2); ++i) {
    const Form& f = forms[i];
    testing::expect_compiles(*with(expect_space(f.problem), f.tile, f.schedule).source, f.spilled);
  }
  testing::expect_host_side_compiles(*expect_space(exact).candidates.front().source);
}

/// Heads inside the rows: [batch, head, m, k] of [batch, m, head, k], no common stride.
TEST(WgmmaGemm, BatchesOfTwoStridesAreTwoDimsOfTheTensorMaps) {
  const Space s =
      expect_space(R"({"m":256,"n":128,"k":64,"batch":8,"heads":4,"epilogue":"bias_residual"})");
  const Candidate& c = s.candidates.front();
  EXPECT_EQ(c.config["batches"], "two strides");
  EXPECT_THAT(c.source->text, HasSubstr("two_strides = true"));
  EXPECT_THAT(c.source->text, HasSubstr("p.x[1] = {x1.data, x1.ld, x1.batch, x1.outer, p.inner}"));
  const auto& ints = c.launches.front().ints;
  EXPECT_EQ(ints.at(3), 8);                          // batches
  EXPECT_EQ(ints.at(6 + 3), 64);                     // from head to head of A
  EXPECT_EQ(ints.at(6 + 5 * 4), 4);                  // heads
  EXPECT_EQ(ints.at(6 + 5 * 4 + 1), 256 * 4 * 64);   // from batch to batch of A
  EXPECT_EQ(ints.at(6 + 5 * 4 + 4), 0);              // of the bias
  EXPECT_EQ(ints.at(6 + 5 * 4 + 5), 256 * 4 * 128);  // and of the residual
  EXPECT_EQ(ints.size(), 6 + 5 * 4 + 6);
  testing::expect_compiles(*c.source);
  testing::expect_host_side_compiles(*c.source);
  const Space one = expect_space(R"({"m":256,"n":128,"k":64,"batch":8})");
  EXPECT_THAT(one.candidates.front().source->text, HasSubstr("two_strides = false"));
}

constexpr const char* long_k = R"({"m":256,"n":256,"k":524288,"b_major":"n"})";

TEST(WgmmaSplitK, SlicesFillTheMachineAndCoverK) {
  for (const char* problem : {long_k, R"({"m":128,"n":64,"k":8200,"epilogue":"bias_gelu"})"}) {
    const Json stated = parse_json(problem);
    for (const Candidate& c : expect_space(problem, "wgmma_split_k").candidates) {
      for (const Launch& l : c.launches) {
        const int64_t slices = l.knobs["splits"];
        const int64_t depth = c.config["tile"][2];
        const int64_t steps = (stated["k"].get<int64_t>() + slices * depth - 1) / (slices * depth);
        EXPECT_EQ(l.ints.at(2), stated["k"]);
        EXPECT_EQ(l.ints.at(3), slices);
        const int64_t k_slice = l.ints.at(18), k_step = l.ints.at(19);
        const bool interleaved = l.knobs["slices"] == "interleaved";
        EXPECT_EQ(k_slice, interleaved ? depth : depth * steps);
        EXPECT_EQ(k_step, interleaved ? depth * slices : depth);
        // No slice is of zeros only, and their sums have room in the workspace.
        EXPECT_LT(k_slice * (slices - 1), stated["k"]);
        EXPECT_EQ(l.ints.at(20),
                  slices * 4 * stated["m"].get<int64_t>() * stated["n"].get<int64_t>());
      }
    }
  }
  const Candidate first = expect_space(long_k, "wgmma_split_k").candidates.front();
  EXPECT_EQ(first.config["tile"], Json({128, 256, 64}));
  EXPECT_EQ(first.launches.front().knobs["splits"], 66);  // 132 blocks
}

TEST(WgmmaSplitK, BuildsWithoutCutlass) {
  const Candidate c =
      expect_space(R"({"m":128,"n":64,"k":8192,"epilogue":"bias_residual","dtype":"float16"})",
                   "wgmma_split_k")
          .candidates.front();
  EXPECT_FALSE(c.source->cutlass);
  EXPECT_THAT(c.source->text, Not(HasSubstr("cutlass::")));
  EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
  EXPECT_THAT(c.source->text, HasSubstr("using ElementD = __half;"));
}

TEST(WgmmaSplitK, SaysWhatItLeavesToOthers) {
  const auto refused = [](const char* problem) {
    const auto s = space_of(problem, "wgmma_split_k");
    return s ? std::string() : to_text(s.error());
  };
  EXPECT_THAT(refused(square), HasSubstr("without slicing"));
  EXPECT_THAT(refused(R"({"m":256,"n":256,"k":65536,"batch":2})"), HasSubstr("2 batches"));
  EXPECT_THAT(refused(R"({"m":256,"n":256,"k":65536,"epilogue":"bias_silu_saved"})"),
              HasSubstr("2 results"));
  EXPECT_THAT(refused(R"({"m":512,"n":512,"k":128})"), HasSubstr("worth a second kernel"));
}

TEST(WgmmaSplitK, Compiles) {
  const Space s = expect_space(long_k, "wgmma_split_k");
  testing::expect_compiles(*with(s, {128, 256, 64}, "cooperative").source);
  const Space exact = expect_space(
      R"({"m":132,"n":68,"k":8188,"dtype":"float32","precision":"fp32","epilogue":"bias_residual"})",
      "wgmma_split_k");
  testing::expect_compiles(*exact.candidates.front().source);
  testing::expect_host_side_compiles(*exact.candidates.front().source);
}

// Device code without spills, that waits for the kernel before it; host side by its own command.
TEST(WgmmaGemm, Compiles) {
  const Space b = expect_space(R"({"m":65536,"n":3072,"k":768,"epilogue":"bias_gelu"})");
  testing::expect_compiles(*with(b, {128, 128, 64}, "pingpong").source);
  testing::expect_compiles(*with(b, {128, 256, 64}, "cooperative").source);
  testing::expect_host_side_compiles(*b.candidates.front().source);
  const Space n = expect_space(
      R"({"m":4096,"n":4096,"k":4096,"a_major":"m","b_major":"n","epilogue":"two_residuals"})");
  testing::expect_compiles(*with(n, {256, 128, 64}, "cooperative").source);
  testing::expect_compiles(*with(expect_space(fp32), {128, 160, 16}, "cooperative").source);
}

TEST(WgmmaGated, CompilesWithBothResults) {
  const Space s =
      expect_space(R"({"m":2048,"n":14336,"k":4096,"epilogue":"gated_silu_saved"})", "wgmma_gated");
  EXPECT_EQ(s.candidates.front().config["products"], "paired");
  testing::expect_compiles(*with(s, {128, 256, 64}, "cooperative").source);
  testing::expect_host_side_compiles(*s.candidates.front().source);
}

}  // namespace
}  // namespace tessera::realize
