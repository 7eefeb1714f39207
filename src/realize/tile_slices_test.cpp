// Products whose k is cut into slices, in the kernel language: what is offered where, both kernels'
// proofs, and one source that compiles.
#include "realize/common/tile_slices.h"

#include <gmock/gmock.h>
#include <map>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::HasSubstr;

constexpr const char* decode = R"({"m":16,"n":4096,"k":14336,"epilogue":"bias_residual"})";
constexpr const char* long_k = R"({"m":256,"n":256,"k":524288,"b_major":"n"})";

// Elements that wgmma does not read where they lie.
constexpr const char* long_k_tf32 =
    R"({"m":256,"n":256,"k":524288,"b_major":"n","dtype":"float32","precision":"tf32"})";

/// Writing sixteen sources takes seconds: each problem is asked once.
const std::vector<Candidate>& offered(const char* problem) {
  static std::map<std::string, std::vector<Candidate>> known;
  const auto [place, is_new] = known.try_emplace(problem);
  if (!is_new) return place->second;
  for (const Realizer* r : all()) {
    if (r->name != "tile_gemm") continue;
    auto found = r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                            **arch::find("sm_90a"));
    EXPECT_TRUE(found) << to_text(found.error());
    if (found) place->second = std::move(found->candidates);
  }
  return place->second;
}

std::vector<Candidate> in_slices(const char* problem) {
  std::vector<Candidate> out;
  for (const Candidate& c : offered(problem))
    if (c.config.value("split", "") == "slices") out.push_back(c);
  return out;
}

TEST(TileSlices, AreOfferedWhereTilesAreTooFewForTheMachine) {
  for (const char* problem : {decode, long_k, long_k_tf32}) {
    const std::vector<Candidate>& all = offered(problem);
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.front().config.value("split", ""), "slices") << problem;
    EXPECT_GE(in_slices(problem).size(), 6U) << problem;
  }
  for (const char* problem :
       {R"({"m":4096,"n":4096,"k":4096})", R"({"m":256,"n":256,"k":8192,"batch":4})",
        R"({"m":256,"n":256,"k":128})",
        R"({"m":256,"n":256,"k":8192,"dtype":"float8_e4m3fn","precision":"fp8",
            "out_dtype":"bfloat16"})",
        R"({"m":256,"n":256,"k":524288,"dtype":"float32","precision":"fp32"})"}) {
    const rules::Pattern pattern = testing::pattern_of(parse_json(problem));
    const auto* body = dynamic_cast<const rules::GemmBody*>(pattern.body.get());
    const auto p = gemm_problem(*body, pattern.precision);
    ASSERT_TRUE(p);
    EXPECT_TRUE(tile_slices_configs(*p, **arch::find("sm_90a")).configs.empty()) << problem;
  }
}

/// Few rows are the columns of a wgmma.
TEST(TileSlices, OfFewRowsAreTurned) {
  for (const Candidate& c : in_slices(decode)) {
    EXPECT_EQ(c.config["product"], "turned");
    EXPECT_LE(c.config["tile"][1], 32) << c.label();
  }
  for (const Candidate& c : in_slices(long_k)) EXPECT_EQ(c.config["product"], "as it is");
}

/// Of 4 bytes, B lies along k: the product is turned where it does not, whatever its extents.
TEST(TileSlices, OfElementsThatDoNotLieAlongKComeThroughRegisters) {
  const auto expect = [](const char* problem, const char* product) {
    const std::vector<Candidate> all = in_slices(problem);
    EXPECT_FALSE(all.empty()) << problem;
    for (const Candidate& c : all) {
      EXPECT_EQ(c.config["product"], product) << problem;
      EXPECT_EQ(c.config.value("mainloop", ""), "registers") << problem;
      EXPECT_THAT(c.source->text, HasSubstr("kernels/gemm_slices_tf32.py"));
    }
  };
  expect(long_k_tf32, "turned");
  expect(R"({"m":16,"n":1024,"k":8192,"a_major":"m","dtype":"float32","precision":"tf32"})",
         "as it is");
}

/// A launch is the integers of `partial` and then of `reduce`: the second's extents of the
/// workspace are the first's.
TEST(TileSlices, EachNumberOfSlicesIsALaunch) {
  const Candidate c = in_slices(decode).front();
  ASSERT_GE(c.launches.size(), 1U);
  const std::string ints = c.source->text.substr(c.source->text.find("\"ints\":["));
  const Json names = parse_json(ints.substr(7, ints.find(']') - 6));
  for (const Launch& l : c.launches) {
    ASSERT_EQ(l.ints.size(), names.size());
    std::map<std::string, int64_t> v;
    for (std::size_t i = 0; i < l.ints.size(); ++i) v[names[i]] = l.ints[i];
    EXPECT_EQ(v["partial_S"], l.knobs["splits"]);
    EXPECT_EQ(v["reduce_S"], v["partial_S"]);
    EXPECT_EQ(v["partial_M"], 4096);
    EXPECT_EQ(v["reduce_M"], 16);
    EXPECT_EQ(v["reduce_N"], 4096);
    EXPECT_EQ(v["partial_P_SLICE"], 16 * 4096);
    EXPECT_EQ(v["partial_K"], 14336);
  }
  EXPECT_THAT(c.source->text, HasSubstr("tessera_kernel0::run(&part0, passed0, stream)"));
}

TEST(TileSlices, BothKernelsAreProved) {
  const char* problems[] = {
      decode,
      R"({"m":136,"n":72,"k":8200,"a_major":"m","b_major":"n","epilogue":"residual"})",
      long_k,
      R"({"m":67,"n":70,"k":8200,"epilogue":"bias_gelu"})",
      R"({"m":24,"n":520,"k":8200,"epilogue":"bias_silu_saved"})",
      R"({"m":132,"n":68,"k":8188,"epilogue":"bias_residual","dtype":"float32",
          "precision":"tf32"})",
      long_k_tf32,
      R"({"m":20,"n":516,"k":8188,"b_major":"n","d_major":"m","epilogue":"bias_residual",
          "dtype":"float32","precision":"tf32"})"};
  const std::size_t most = thorough() ? std::size(problems) : 1;
  for (std::size_t which = 0; which < most; ++which) {
    const std::vector<Candidate> all = in_slices(problems[which]);
    ASSERT_FALSE(all.empty()) << problems[which];
    for (std::size_t i = 0; i < (thorough() ? all.size() : 1); ++i) {
      const auto proof = all[i].source->prove();
      EXPECT_TRUE(proof) << problems[which] << " " << all[i].label() << " "
                         << to_text(proof.error());
    }
  }
}

TEST(TileSlices, Compile) {
  const std::vector<Candidate> all = in_slices(decode);
  testing::expect_compiles(*all.front().source);
  testing::expect_host_side_compiles(*all.front().source);
}

}  // namespace
}  // namespace tessera::realize
