#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <set>

#include "base/thorough.h"
#include "realize/common/sm90_config.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const Realizer& realizer(std::string_view name) {
  for (const Realizer* r : all()) {
    if (r->name == name) return *r;
  }
  ADD_FAILURE() << "no realizer " << name;
  return *all().front();
}

Result<Space> space_of(const char* problem, std::string_view name = "cutlass_gemm") {
  return realizer(name).realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                                **arch::find("sm_90a"));
}

GemmProblem problem_of(const char* text) {
  const rules::Pattern p = testing::pattern_of(parse_json(text));
  return *gemm_problem(dynamic_cast<const rules::GemmBody&>(*p.body), p.precision);
}

/// Place of a configuration in the order of the space; -1 when absent.
int place(const Space& s, const std::vector<int>& tile, const std::vector<int>& cluster,
          const char* schedule) {
  for (std::size_t i = 0; i < s.candidates.size(); ++i) {
    const Json& c = s.candidates[i].config;
    if (c["tile"] == Json(tile) && c["cluster"] == Json(cluster) && c["schedule"] == schedule) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

TEST(CutlassGemm, OffersThirtyConfigurationsAndCountsWhatItPruned) {
  const auto s = space_of(R"({"m":4096,"n":4096,"k":4096})");
  ASSERT_TRUE(s) << to_text(s.error());
  std::size_t launches = 0;
  for (const Candidate& c : s->candidates) launches += c.launches.size();
  EXPECT_GE(launches, 30u);
  EXPECT_GE(s->candidates.size(), 12u);
  std::set<std::string> reasons;
  for (const auto& [reason, count] : s->pruned) {
    EXPECT_GT(count, 0);
    reasons.insert(reason);
  }
  EXPECT_THAT(reasons, Contains("more than 160 accumulator registers a thread"));
  EXPECT_THAT(reasons, Contains("ping-pong forbids stream-K"));
  EXPECT_THAT(reasons, Contains("shared memory: fewer than 3 stages"));
}

TEST(CutlassGemm, PutsTheMeasuredWinnersEarly) {
  const auto square = space_of(R"({"m":4096,"n":4096,"k":4096})");
  EXPECT_LT(place(*square, {128, 256, 64}, {2, 1}, "cooperative"), 8);
  EXPECT_GE(place(*square, {128, 256, 64}, {2, 1}, "cooperative"), 0);
  const auto batched = space_of(R"({"m":512,"n":1024,"k":2048,"batch":128,"b_major":"n"})");
  EXPECT_LT(place(*batched, {64, 256, 64}, {2, 1}, "pingpong"), 4);
  EXPECT_LT(place(*batched, {128, 128, 64}, {2, 1}, "pingpong"), 4);
  const auto tf32 = space_of(
      R"({"m":4096,"n":4096,"k":4096,"b_major":"n","dtype":"float32","precision":"tf32"})");
  EXPECT_LT(place(*tf32, {128, 256, 32}, {2, 1}, "cooperative"), 4);
  EXPECT_GE(place(*tf32, {128, 256, 32}, {2, 1}, "cooperative"), 0);
}

// The model's choice; measured as the fastest in tf32 on an H200.
TEST(CutlassGemm, LongKBeginsWithTilesThatReadAllOnce) {
  for (const char* problem :
       {R"({"m":256,"n":256,"k":524288,"b_major":"n"})",
        R"({"m":256,"n":256,"k":524288,"b_major":"n","dtype":"float32","precision":"tf32"})"}) {
    const auto s = space_of(problem, "cutlass_split_k");
    ASSERT_TRUE(s) << to_text(s.error());
    EXPECT_EQ(s->candidates.at(0).config["tile"][0], 128) << problem;
    EXPECT_EQ(s->candidates.at(0).config["tile"][1], 256) << problem;
    EXPECT_EQ(s->candidates.at(0).config["cluster"], Json({2, 1})) << problem;
  }
}

TEST(CutlassGemm, EveryConfigurationKeepsTheLimits) {
  const GemmProblem p = problem_of(R"({"m":1024,"n":1024,"k":4096,"epilogue":"residual"})");
  const arch::Arch& arch = **arch::find("sm_90a");
  const Sm90Needs needs = needs_of(p);
  const ConfigSpace space = sm90_configs(p, arch);
  ASSERT_FALSE(space.configs.empty());
  for (const auto& [c, ms] : space.configs) {
    EXPECT_LE(c.accumulator_registers(), 160);
    const int64_t stage = static_cast<int64_t>(c.tile_m + c.tile_n) * c.tile_k * 2;
    EXPECT_LE(
        stage * mainloop_stages(c, needs, arch.shared_memory_per_block) + epilogue_bytes(c, needs),
        arch.shared_memory_per_block);
    EXPECT_FALSE(c.schedule == Schedule::pingpong && c.scheduler == Scheduler::stream_k);
    EXPECT_GT(ms, 0);
  }
}

TEST(CutlassGemm, OneTextServesAllShapesOfOneKind) {
  const auto q = space_of(R"({"m":2048,"n":4096,"k":4096})");
  const auto o = space_of(R"({"m":8192,"n":6144,"k":1024})");
  std::set<std::string> texts;
  for (const Candidate& c : q->candidates) texts.insert(c.source->text);
  int shared = 0;
  for (const Candidate& c : o->candidates) shared += texts.contains(c.source->text) ? 1 : 0;
  EXPECT_GT(shared, 10);
  EXPECT_NE(q->candidates.front().launches.front().ints,
            o->candidates.front().launches.front().ints);
}

TEST(CutlassGemm, BuffersMoreStoresWhereTheMainloopLosesNoStage) {
  const auto big = space_of(R"({"m":4096,"n":4096,"k":4096})");
  bool buffered = false;
  for (const Candidate& c : big->candidates) {
    const bool more = c.config.value("store_buffers", 0) == 4;
    EXPECT_EQ(more,
              c.source->text.find("tessera::Restaged<StockEpilogue, 4>") != std::string::npos);
    if (c.config["tile"] != Json({128, 256, 64})) continue;
    EXPECT_TRUE(more);
    EXPECT_EQ(c.config["stages"], 4);
    buffered = true;
  }
  EXPECT_TRUE(buffered);
  // fp32 results: 64 KiB of buffers would take a stage. With a residual the buffers are C's.
  const auto tf32 =
      space_of(R"({"m":4096,"n":4096,"k":4096,"dtype":"float32","precision":"tf32"})");
  const auto residual = space_of(R"({"m":4096,"n":4096,"k":4096,"epilogue":"residual"})");
  for (const Candidate& c : tf32->candidates) {
    if (c.config["tile"] != Json({128, 256, 32})) continue;
    EXPECT_FALSE(c.config.contains("store_buffers"));
  }
  for (const Candidate& c : residual->candidates) EXPECT_FALSE(c.config.contains("store_buffers"));
}

// 160, 224 and 320 columns are multiplied by instructions of 160 and 224, not of 32 and 64: those
// made 128x320 a seventh slower than 128x256, of which it is now 2 % ahead (2048 x 28672 x 4096).
TEST(CutlassGemm, TilesHaveTheWidestInstructionThatDividesThem) {
  const auto s = space_of(R"({"m":4096,"n":8960,"k":4096})");
  ASSERT_TRUE(s) << to_text(s.error());
  std::set<int> wide, usual;
  for (const Candidate& c : s->candidates) {
    const auto& flags = c.source->flags;
    const bool all = std::find(flags.begin(), flags.end(),
                               "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED") != flags.end();
    (all ? wide : usual).insert(int(c.config["tile"][1]));
  }
  EXPECT_TRUE(wide.contains(320)) << s->candidates.size();
  for (const int n : wide) EXPECT_TRUE(n == 160 || n == 224 || n == 320) << n;
  for (const int n : usual) EXPECT_TRUE(n % 96 == 0 || (n & (n - 1)) == 0) << n;
}

TEST(CutlassGemm, FunctionsAreAsExactAsTheResult) {
  const auto text = [](const std::string& types) {
    const std::string problem = R"({"m":512,"n":512,"k":512,"epilogue":"bias_gelu",)" + types;
    return space_of(problem.c_str())->candidates.front().source->text;
  };
  EXPECT_THAT(text(R"("dtype":"bfloat16","precision":"bf16"})"), HasSubstr("= tsb_gelu_tanh("));
  EXPECT_THAT(text(R"("dtype":"float16","precision":"fp16"})"), HasSubstr("= tsf_gelu_tanh("));
}

TEST(CutlassGemm, FusesTheWholeEpilogueInOneVisitor) {
  const auto s = space_of(R"({"m":4096,"n":4096,"k":512,"epilogue":"bias_gelu"})");
  const std::string& text = s->candidates.front().source->text;
  EXPECT_THAT(text, HasSubstr("Sm90RowBroadcast<0, Tile, cutlass::bfloat16_t"));
  EXPECT_THAT(text, HasSubstr("tsb_gelu_tanh"));
  EXPECT_THAT(text, HasSubstr("using ElementC = void"));
  const auto r = space_of(R"({"m":4096,"n":4096,"k":512,"epilogue":"two_residuals"})");
  EXPECT_THAT(r->candidates.front().source->text, HasSubstr("Sm90SrcFetch<ElementC>"));
  EXPECT_THAT(r->candidates.front().source->text,
              HasSubstr("Sm90AuxLoad<0, void, cutlass::bfloat16_t"));
}

TEST(CutlassGemm, StoresEveryResultOfTheEpilogue) {
  const auto s =
      space_of(R"({"m":4096,"n":4096,"k":512,"epilogue":"bias_silu_saved","d_major":"m"})");
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text,
              HasSubstr("Compute<Fused1, cutlass::bfloat16_t>, "
                        "Store<cutlass::bfloat16_t, cutlass::layout::ColumnMajor>,"));
  EXPECT_THAT(c.source->text, HasSubstr("get<3>(r.epilogue.thread).ptr_aux = d1"));
  EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
  EXPECT_EQ(c.launches.front().ints[1 + 24], 4);  // d1 is the fifth tensor
  const GemmProblem p = problem_of(R"({"m":512,"n":512,"k":512,"epilogue":"bias_silu_saved"})");
  EXPECT_EQ(needs_of(p).further_bytes, 2);
  EXPECT_FALSE(
      space_of(R"({"m":256,"n":256,"k":65536,"epilogue":"bias_silu_saved"})", "cutlass_split_k"));
}

TEST(CutlassGemm, StatesTf32WithNMajorBAsTheTransposedProduct) {
  const auto s = space_of(
      R"({"m":512,"n":1024,"k":2048,"b_major":"n","dtype":"float32","precision":"tf32","epilogue":"bias"})");
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_EQ(c.config["transposed"], true);
  EXPECT_EQ(c.launches.front().ints[1], 1024);  // m
  EXPECT_EQ(c.launches.front().ints[2], 512);   // n
  // A along n became a vector along the rows of the transposed result.
  EXPECT_THAT(c.source->text, HasSubstr("Sm90ColBroadcast<0, Tile, float"));
  EXPECT_THAT(c.source->text, HasSubstr("using LayoutD = cutlass::layout::ColumnMajor"));
  EXPECT_THAT(c.source->text, HasSubstr("using LayoutA = cutlass::layout::ColumnMajor"));
  EXPECT_THAT(c.source->text, HasSubstr("using ElementA = float"));
  EXPECT_THAT(c.source->text, HasSubstr("tessera::WideRows<"));
}

TEST(CutlassGemm, WideRowsAreReadInPairsWithoutBankConflicts) {
  testing::expect_runs_on_host("wide_rows_layouts.cu", true);
}

TEST(CutlassGemm, OnlyFourByteOperandsThroughRegistersHaveWideRows) {
  for (const char* problem : {R"({"m":512,"n":512,"k":512,"dtype":"float32","precision":"tf32"})",
                              R"({"m":512,"n":512,"k":512,"a_major":"m","b_major":"n"})"}) {
    const auto s = space_of(problem);
    ASSERT_TRUE(s) << to_text(s.error());
    EXPECT_THAT(s->candidates.front().source->text, Not(HasSubstr("WideRows"))) << problem;
  }
}

TEST(CutlassGemm, SaysWhyItCannot) {
  const auto unaligned = space_of(R"({"m":64,"n":63,"k":64})");
  ASSERT_FALSE(unaligned);
  EXPECT_TRUE(unaligned.error().code.starts_with("TS04"));
  EXPECT_THAT(unaligned.error().message, HasSubstr("aligned"));
  const auto fp32 = space_of(R"({"m":64,"n":64,"k":64,"dtype":"float32","precision":"fp32"})");
  ASSERT_FALSE(fp32);
  EXPECT_THAT(fp32.error().helps.front(), HasSubstr("cutlass_gemm_fp32"));
}

TEST(CutlassGemm, SharedOperandHasBatchStrideZero) {
  const auto s = space_of(R"({"m":512,"n":512,"k":512,"batch":8,"shared_b":true})");
  const auto& ints = s->candidates.front().launches.front().ints;
  EXPECT_EQ(ints[1 + 8 + 3], 512 * 512);  // a_batch
  EXPECT_EQ(ints[1 + 12 + 3], 0);         // b_batch
}

TEST(CutlassGemm, HostSideCompilesApart) {
  const auto s = space_of(R"({"m":2048,"n":4096,"k":4096,"epilogue":"bias_gelu"})");
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    if (!testing::quick_to_compile(*c.source)) continue;
    EXPECT_THAT(c.source->text, HasSubstr("TESSERA_ENTRY_OF(\"7product5Fused\", entry())"));
    testing::expect_host_side_compiles(*c.source);
    return;
  }
  FAIL() << "no tile of a usual width";
}

TEST(CutlassGemm, StreamKCompilesForHopper) {
  const auto s = space_of(R"({"m":2048,"n":4096,"k":14336,"epilogue":"residual"})");
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    if (c.config["scheduler"] != "stream_k" || !testing::quick_to_compile(*c.source)) continue;
    testing::expect_compiles(*c.source);
    return;
  }
  FAIL() << "no stream-K candidate";
}

// Two results contain what one has; the 8-bit family compiles the plain store.
TEST(CutlassGemm, CompilesSeveralResultsOfWideRowsForHopper) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  const auto s = space_of(
      R"({"m":4096,"n":4096,"k":512,"b_major":"n","dtype":"float32","precision":"tf32","epilogue":"bias_silu_saved"})");
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_THAT(s->candidates.front().source->text, HasSubstr("WideRows"));
  testing::expect_compiles(*s->candidates.front().source);
}

}  // namespace
}  // namespace tessera::realize
