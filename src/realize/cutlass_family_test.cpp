// The GEMM realizers beside cutlass_gemm: K slices, fp32 accuracy, Ampere, cublasLt.
#include <gmock/gmock.h>

#include "base/thorough.h"
#include "realize/common/sliced.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<Space> space_of(std::string_view name, const char* problem,
                       std::string_view machine = "sm_90a") {
  for (const Realizer* r : all()) {
    if (r->name != name) continue;
    return r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                      **arch::find(machine));
  }
  return error(fail(Code{"TS0900", "test"}, "no realizer {}", name));
}

TEST(SlicedGemm, IsABatchWhoseStrideIsTheSlice) {
  const rules::Pattern pattern = testing::pattern_of(
      parse_json(R"({"m":256,"n":256,"k":524288,"b_major":"n","epilogue":"bias"})"));
  const GemmProblem p =
      *gemm_problem(dynamic_cast<const rules::GemmBody&>(*pattern.body), pattern.precision);
  const GemmProblem s = sliced(p, 64);
  EXPECT_EQ(s.l, 64);
  EXPECT_EQ(s.k, 8192);
  EXPECT_EQ(s.a.batch, 8192);        // along a row
  EXPECT_EQ(s.b.batch, 8192 * 256);  // whole rows of k
  EXPECT_EQ(s.outputs.front().tensor, -1);
  EXPECT_EQ(s.outputs.front().dtype, DType::float32);
  EXPECT_TRUE(s.leaves.empty());
  EXPECT_EQ(sliced_scratch_bytes(p, 64), 64 * 256 * 256 * 4);
}

TEST(SlicedGemm, OffersTheMeasuredSliceCountAndDividesK) {
  const auto s = space_of("cutlass_split_k", R"({"m":256,"n":256,"k":524288,"b_major":"n"})");
  ASSERT_TRUE(s) << to_text(s.error());
  bool measured = false;
  for (const Candidate& c : s->candidates) {
    for (const Launch& l : c.launches) {
      const int64_t slices = l.knobs["splits"];
      EXPECT_EQ(524288 % slices, 0);
      measured |= slices == 64 && c.config["tile"] == Json({128, 256, 64}) &&
                  c.config["cluster"] == Json({2, 1});
    }
  }
  EXPECT_TRUE(measured);
  const auto square = space_of("cutlass_split_k", R"({"m":4096,"n":4096,"k":4096})");
  ASSERT_FALSE(square);
  EXPECT_THAT(square.error().message, HasSubstr("without slicing"));
}

TEST(Fp32Gemm, SplitsPackedOrInline) {
  const auto s = space_of(
      "cutlass_gemm_fp32",
      R"({"m":4096,"n":4096,"k":4096,"b_major":"n","dtype":"float32","precision":"fp32"})");
  ASSERT_TRUE(s) << to_text(s.error());
  bool packed = false, inlined = false;
  for (const Candidate& c : s->candidates) {
    const bool is_packed = c.source->text.find("tessera::SplitTf32Builder<") != std::string::npos;
    packed |= is_packed;
    EXPECT_EQ(c.workspace_bytes > 0, is_packed) << c.label();
    inlined |=
        c.source->text.find("tessera::KMajorStride, tessera::RowMajorStride>") != std::string::npos;
    EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
  }
  EXPECT_TRUE(packed);
  EXPECT_TRUE(inlined);
  EXPECT_FALSE(space_of("cutlass_gemm_fp32", R"({"m":64,"n":64,"k":64})"));
}

TEST(Fp32Gemm, BothMainloopsCompileForHopper) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  const auto s = space_of(
      "cutlass_gemm_fp32",
      R"({"m":4096,"n":4096,"k":4096,"b_major":"n","dtype":"float32","precision":"fp32"})");
  ASSERT_TRUE(s) << to_text(s.error());
  std::set<std::string> compiled;
  for (const Candidate& c : s->candidates) {
    // One of them in 176 columns, by the widest instruction; not both, for the time it takes.
    if (testing::quick_to_compile(*c.source) == compiled.empty()) continue;
    if (!compiled.insert(c.config["mainloop"]).second) continue;
    testing::expect_compiles(*c.source, 128);  // two accumulators of 96 registers
  }
  EXPECT_EQ(compiled.size(), 2u);
}

TEST(CublasLt, TakesItsOwnEpiloguesOnly) {
  const auto s = space_of("cublaslt", R"({"m":512,"n":512,"k":512,"epilogue":"bias_gelu"})");
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_EQ(s->candidates.front().kind, Kind::library);
  EXPECT_THAT(s->candidates.front().source->text, HasSubstr("CUBLASLT_EPILOGUE_GELU_BIAS"));
  EXPECT_EQ(s->candidates.front().launches.size(), 8u);
  const auto silu = space_of("cublaslt", R"({"m":512,"n":512,"k":512,"epilogue":"bias_silu"})");
  ASSERT_FALSE(silu);
  EXPECT_THAT(silu.error().message, HasSubstr("no such epilogue"));
}

TEST(CublasLt, Fp8WithAndWithoutFastAccumulation) {
  const auto s = space_of(
      "cublaslt",
      R"({"m":512,"n":512,"k":512,"dtype":"float8_e4m3fn","precision":"fp8","out_dtype":"bfloat16"})");
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text,
              HasSubstr("CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, true, true"));
  EXPECT_EQ(c.launches.size(), 16u);
  EXPECT_EQ(c.launches.front().ints[6], 0);
  EXPECT_EQ(c.launches.back().ints[6], 1);
  const auto n_major = space_of(
      "cublaslt",
      R"({"m":512,"n":512,"k":512,"dtype":"float8_e4m3fn","precision":"fp8","b_major":"n"})");
  ASSERT_FALSE(n_major);
  EXPECT_THAT(n_major.error().message, HasSubstr("contiguous in k"));
  EXPECT_FALSE(space_of("cublaslt",
                        R"({"m":512,"n":520,"k":512,"dtype":"float8_e4m3fn","precision":"fp8"})"));
}

TEST(CutlassGemm8Bit, PromotesAccumulatorsOrNot) {
  const auto s = space_of(
      "cutlass_gemm",
      R"({"m":4096,"n":4096,"k":4096,"dtype":"float8_e4m3fn","precision":"fp8","out_dtype":"bfloat16"})");
  ASSERT_TRUE(s) << to_text(s.error());
  int fast = 0, promoted = 0;
  for (const Candidate& c : s->candidates) {
    const bool is_fast = c.config.value("fast_accum", false);
    EXPECT_EQ(c.source->text.find("FP8FastAccum") != std::string::npos, is_fast);
    (is_fast ? fast : promoted)++;
  }
  EXPECT_GE(fast, 8);
  EXPECT_GE(promoted, 8);
}

TEST(CutlassGemm8Bit, CompilesForHopper) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  const auto s = space_of(
      "cutlass_gemm",
      R"({"m":4096,"n":4096,"k":4096,"dtype":"float8_e4m3fn","precision":"fp8","out_dtype":"bfloat16"})");
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    if (c.config.value("fast_accum", false)) continue;  // promotion is the harder to place
    if (!testing::quick_to_compile(*c.source)) continue;
    testing::expect_compiles(*c.source);
    return;
  }
}

TEST(Sm80Gemm, TakesWhatTmaCannot) {
  const auto odd = space_of("cutlass_gemm_sm80", R"({"m":64,"n":66,"k":70})");
  ASSERT_TRUE(odd) << to_text(odd.error());
  EXPECT_THAT(odd->candidates.front().source->text, HasSubstr("kNone, 2, ElementAB, LayoutB"));
  EXPECT_FALSE(space_of("cutlass_gemm_sm80", R"({"m":64,"n":64,"k":64})"));  // wgmma takes it
  EXPECT_FALSE(space_of("cutlass_gemm_sm80", R"({"m":64,"n":64,"k":65})"));  // 2-byte steps
}

TEST(Sm80Gemm, CompilesForAmpere) {
  const auto s =
      space_of("cutlass_gemm_sm80", R"({"m":512,"n":260,"k":512,"epilogue":"bias_gelu"})", "sm_80");
  ASSERT_TRUE(s) << to_text(s.error());
  testing::expect_compiles(*s->candidates.front().source);
}

}  // namespace
}  // namespace tessera::realize
