// Products whose operands are copied first, to rows that TMA can take: which are, what a launch
// says, all kernels' proofs, and one source that compiles.
#include "realize/common/tile_copies.h"

#include <atomic>
#include <future>
#include <gmock/gmock.h>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* odd_k = R"({"m":2048,"n":1000,"k":1023,"epilogue":"bias"})";
constexpr const char* odd_n = R"({"m":264,"n":511,"k":512,"b_major":"n"})";
constexpr const char* batches = R"({"m":255,"n":257,"k":334,"batch":3})";
constexpr const char* fp32 =
    R"({"m":300,"n":512,"k":511,"dtype":"float32","precision":"fp32","epilogue":"bias_gelu"})";
constexpr const char* tf32 = R"({"m":300,"n":512,"k":511,"dtype":"float32","precision":"tf32"})";
constexpr const char* fp8 =
    R"({"m":300,"n":512,"k":1000,"dtype":"float8_e4m3fn","precision":"fp8","out_dtype":"bfloat16"})";

GemmProblem problem_of(const char* text) {
  const rules::Pattern pattern = testing::pattern_of(parse_json(text));
  auto p =
      gemm_problem(*dynamic_cast<const rules::GemmBody*>(pattern.body.get()), pattern.precision);
  EXPECT_TRUE(p) << to_text(p.error());
  return *p;
}

std::vector<Candidate> with_copies(const char* problem) {
  std::vector<Candidate> out;
  for (const Realizer* r : all()) {
    if (r->name != "tile_gemm") continue;
    auto found = r->realize(testing::pattern_of(parse_json(problem)), graph::Graph{},
                            **arch::find("sm_90a"));
    EXPECT_TRUE(found) << to_text(found.error());
    if (!found) return out;
    for (Candidate& c : found->candidates)
      if (c.config.contains("copies")) out.push_back(std::move(c));
  }
  return out;
}

std::vector<TileCopy> copies_of(const char* problem) {
  auto copies = tile_copies(problem_of(problem), **arch::find("sm_90a"));
  EXPECT_TRUE(copies) << to_text(copies.error());
  return std::move(*copies);
}

TEST(TileCopies, AreOfWhatTmaCannotTake) {
  EXPECT_TRUE(copies_of(R"({"m":512,"n":511,"k":512})").empty());
  const std::vector<TileCopy> one = copies_of(odd_n);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].operand, "B");
  EXPECT_EQ(one[0].rows, 512);
  EXPECT_EQ(one[0].columns, 511);
  EXPECT_EQ(one[0].to.ld, 512);
  EXPECT_FALSE(one[0].to.columns_contiguous);
  const std::vector<TileCopy> both = copies_of(batches);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].matrices, 3);
  EXPECT_EQ(both[1].to.ld, 336);
  EXPECT_EQ(both[1].to.batch, 257 * 336);
  for (const TileCopy& c : both) EXPECT_TRUE(c.to.aligned());
  EXPECT_TRUE(tile_copied(problem_of(batches), both).a.aligned());
  EXPECT_EQ(copies_of(fp8)[0].to.ld, 1008);
}

/// Sixteen sources take seconds to write. The configuration says what is copied; a launch has the
/// integers of all kernels, and the product's extents and strides are those of the copies.
TEST(TileCopies, OfBothOperandsPrecedeTheProduct) {
  const std::vector<Candidate> all = with_copies(batches);
  ASSERT_FALSE(all.empty());
  const Candidate& c = all.front();
  EXPECT_THAT(c.config["copies"], ElementsAre("A", "B"));
  EXPECT_THAT(c.label(), HasSubstr("copy=A copy=B"));
  EXPECT_EQ(c.workspace_bytes, 2 * 3 * (255 + 257) * 336);
  ASSERT_EQ(c.launches.size(), 1U);
  const std::string ints = c.source->text.substr(c.source->text.find("\"ints\":["));
  const Json names = parse_json(ints.substr(7, ints.find(']') - 6));
  ASSERT_EQ(c.launches[0].ints.size(), names.size());
  std::map<std::string, int64_t> v;
  for (std::size_t i = 0; i < names.size(); ++i) v[names[i]] = c.launches[0].ints[i];
  EXPECT_EQ(v["copy_A_M"], 255);
  EXPECT_EQ(v["copy_A_N"], 334);
  EXPECT_EQ(v["copy_A_X_STRIDE"], 334);
  EXPECT_EQ(v["copy_B_L"], 3);
  EXPECT_EQ(v["copy_B_X_tensor"], 1);
  EXPECT_EQ(v["copy_B_Y_STRIDE"], 336);
  EXPECT_EQ(v["gemm_B_STRIDE"], 336);
  EXPECT_EQ(v["gemm_B_BATCH"], 257 * 336);
  EXPECT_FALSE(v.contains("gemm_B_tensor"));
  const auto proof = c.source->prove();
  EXPECT_TRUE(proof) << to_text(proof.error());
}

/// The sources of one problem share the copies' kernels, and compilers run side by side.
TEST(TileCopies, AreProvedForManyAtOnce) {
  const std::vector<TileCopy> both = copies_of(batches);
  std::vector<std::future<Result<Json>>> proofs;
  for (int asked = 0; asked < 4; ++asked)
    for (const TileCopy& copy : both) proofs.push_back(std::async(std::launch::async, copy.proof));
  for (auto& one : proofs) {
    const Result<Json> proof = one.get();
    EXPECT_TRUE(proof) << to_text(proof.error());
  }
}

TEST(TileCopies, AProofIsMadeOnce) {
  std::atomic<int> asked = 0;
  const Proof proof = made_once([&]() -> Result<Json> { return Json(++asked); });
  std::vector<std::future<Result<Json>>> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(std::async(std::launch::async, Proof(proof)));
  for (auto& one : answers) EXPECT_EQ(one.get(), Json(1));
  EXPECT_EQ(asked, 1);
}

TEST(TileCopies, OfOneOperandCompile) {
  const std::vector<Candidate> all = with_copies(odd_n);
  ASSERT_FALSE(all.empty());
  EXPECT_THAT(all.front().config["copies"], ElementsAre("B"));
  testing::expect_compiles(*all.front().source);
  testing::expect_host_side_compiles(*all.front().source);
}

TEST(TileCopies, AreProvedOfAllElements) {
  if (!thorough()) GTEST_SKIP() << "under TESSERA_TEST_ALL=1: sixteen sources each";
  for (const char* problem : {odd_k, odd_n, fp32, tf32, fp8})
    for (const Candidate& c : with_copies(problem)) {
      const auto proof = c.source->prove();
      EXPECT_TRUE(proof) << problem << " " << c.label() << " " << to_text(proof.error());
    }
  testing::expect_compiles(*with_copies(fp8).front().source);
}

}  // namespace
}  // namespace tessera::realize
