// Products whose columns are in parts with epilogues of their own: rotary embedding in the product
// that makes queries and keys.
#include <gmock/gmock.h>
#include <set>

#include "base/thorough.h"
#include "realize/realize.h"
#include "realize/testing/compile.h"
#include "realize/testing/problem_json.h"
#include "rules/gemm.h"

namespace tessera::realize {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

constexpr const char* llama =
    R"({"m":2048,"n":6144,"k":4096,"epilogue":"rotary","rotated":5120,"head_dim":128})";

Result<Space> space_of(const rules::Pattern& pattern, std::string_view name = "cutlass_gemm") {
  for (const Realizer* r : all()) {
    if (r->name == name) return r->realize(pattern, graph::Graph{}, **arch::find("sm_90a"));
  }
  return error(fail(Code{"TS0900", "test"}, "no realizer {}", name));
}

Result<Space> space_of(const char* problem) {
  return space_of(testing::pattern_of(parse_json(problem)));
}

TEST(Parts, EveryTileHoldsWholeGroupsOfOnePart) {
  const auto s = space_of(llama);
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    EXPECT_EQ(int(c.config["tile"][1]) % 128, 0);
    EXPECT_EQ(c.config["scheduler"], "persistent");
    EXPECT_EQ(c.config["columns"], "parts");
  }
  EXPECT_THAT(s->pruned, Contains(::testing::Pair("a tile cuts a group of columns", ::testing::_)));
  // Keys end within a tile of 256 columns.
  const auto odd =
      space_of(R"({"m":2048,"n":640,"k":4096,"epilogue":"rotary","rotated":384,"head_dim":128})");
  ASSERT_TRUE(odd) << to_text(odd.error());
  for (const Candidate& c : odd->candidates) EXPECT_EQ(c.config["tile"][1], 128);
  EXPECT_THAT(odd->pruned, Contains(::testing::Pair("a tile lies in two parts", ::testing::_)));
}

TEST(Parts, PartnersMustMeetInOneThread) {
  const auto s =
      space_of(R"({"m":512,"n":512,"k":512,"epilogue":"rotary","rotated":384,"head_dim":8})");
  ASSERT_FALSE(s);
  EXPECT_THAT(s.error().message, HasSubstr("no tile fits"));
  const auto wide =
      space_of(R"({"m":512,"n":512,"k":512,"epilogue":"rotary","rotated":320,"head_dim":80})");
  ASSERT_TRUE(wide) << to_text(wide.error());
  for (const Candidate& c : wide->candidates) EXPECT_EQ(int(c.config["tile"][1]) % 160, 0);
}

TEST(Parts, TheTextServesEveryProblemOfTheseTypes) {
  const auto s = space_of(llama);
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text, HasSubstr("tessera::PartedEpilogue<BuiltEpilogue, Part0>"));
  EXPECT_THAT(c.source->text, HasSubstr("Columns::pairs"));
  EXPECT_THAT(c.source->text, Not(HasSubstr("Part1")));  // the values' columns are as they are
  EXPECT_THAT(c.source->text, Not(HasSubstr("$")));
  const auto& ints = c.launches.front().ints;
  const std::vector<int64_t> part(ints.begin() + 21, ints.end());
  // Both halves of a table are read through one pointer.
  EXPECT_EQ(part, (std::vector<int64_t>{0, 5120, 2, 0, 128, 0, 2048, 3, 0, 128, 0, 2048}));
  const auto longer =
      space_of(R"({"m":4096,"n":3072,"k":2048,"epilogue":"rotary","rotated":2048,"head_dim":128})");
  ASSERT_TRUE(longer) << to_text(longer.error());
  std::vector<std::string> texts;
  for (const Candidate& x : longer->candidates) texts.push_back(x.source->text);
  EXPECT_THAT(texts, Contains(c.source->text));
}

TEST(Parts, TablesRepeatAndBiasesDifferByHead) {
  const auto s = space_of(R"({"m":2048,"n":512,"k":512,"epilogue":"bias_rotary","rotated":384,
                              "head_dim":64,"positions":512})");
  ASSERT_TRUE(s) << to_text(s.error());
  const Candidate& c = s->candidates.front();
  EXPECT_THAT(c.source->text, HasSubstr("Columns::pairs, true> x2"));   // a table
  EXPECT_THAT(c.source->text, HasSubstr("Columns::pairs, false> x0"));  // the bias
  EXPECT_THAT(c.source->text, HasSubstr("x0.two(row, group, column)"));
  EXPECT_THAT(c.source->text, HasSubstr("struct Part1"));
  const auto& ints = c.launches.front().ints;
  const std::vector<int64_t> bias(ints.begin() + 23, ints.begin() + 28);
  EXPECT_EQ(bias, (std::vector<int64_t>{2, 0, 0, 64, 2048}));
  const std::vector<int64_t> cos(ints.begin() + 28, ints.begin() + 33);
  EXPECT_EQ(cos, (std::vector<int64_t>{3, 0, 64, 0, 512}));
}

// Elsewhere, and for parts of batches, nothing may leave the parts out.
TEST(Parts, OthersSayThatTheyHaveOneEpilogueForAllColumns) {
  const rules::Pattern pattern = testing::pattern_of(parse_json(llama));
  rules::Pattern exact = pattern;
  exact.precision = Precision::fp32;
  // What takes the product without parts says that the parts are in its way.
  rules::Pattern whole = pattern;
  auto in_one =
      std::make_shared<rules::GemmBody>(dynamic_cast<const rules::GemmBody&>(*pattern.body));
  in_one->parts.clear();
  whole.body = in_one;
  const std::set<std::string_view> takes_parts = {"cutlass_gemm", "wgmma_gemm", "tile_gemm"};
  int told = 0;
  for (const Realizer* r : all()) {
    if (r->rule != "gemm" || takes_parts.contains(r->name)) continue;
    for (const char* arch : {"sm_90a", "sm_80", "host"}) {
      for (const rules::Pattern& p : {pattern, exact})
        EXPECT_FALSE(r->realize(p, graph::Graph{}, **arch::find(arch)))
            << r->name << " on " << arch;
    }
    if (!space_of(whole, r->name)) continue;
    const auto refused = space_of(pattern, r->name);
    ASSERT_FALSE(refused);
    EXPECT_THAT(to_text(refused.error()), HasSubstr("one epilogue for all columns")) << r->name;
    ++told;
  }
  EXPECT_GE(told, 2);
  rules::Pattern strided = pattern;
  auto body =
      std::make_shared<rules::GemmBody>(dynamic_cast<const rules::GemmBody&>(*pattern.body));
  body->parts[0].operands[0].strides = {128, 0, 2};
  strided.body = body;
  const auto refused = space_of(strided);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("stride 2 along the columns"));
}

TEST(Parts, EveryAccumulatorMeetsItsPartnerAndItsOperands) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  testing::expect_runs_on_host("turned_layouts.cu");
}

// 128 accumulators and 64 registers of tables: some of what is not in use may lie in memory.
TEST(Parts, CompilesForHopper) {
  if (!thorough()) GTEST_SKIP() << "a minute of nvcc: ./dev test all";
  const auto s = space_of(R"({"m":2048,"n":6144,"k":4096,"epilogue":"scaled_rotary","rotated":5120,
                              "head_dim":128})");
  ASSERT_TRUE(s) << to_text(s.error());
  for (const Candidate& c : s->candidates) {
    if (c.config["tile"] != Json({128, 256, 64})) continue;
    testing::expect_compiles(*c.source, 16);
    return;
  }
  FAIL() << "no tile of 128 x 256";
}

}  // namespace
}  // namespace tessera::realize
