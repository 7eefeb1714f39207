// Loops of the core as loops of C++: sums over turns, and branches up to a bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/builder.h"
#include "lower/lower.h"

namespace tessera::lower {
namespace {

using core::Builder;
using core::Integers;
using term::Term;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(Builder& b) {
  const Result<core::Kernel> k = b.finish();
  EXPECT_TRUE(k);
  const Result<CudaSource> source = lower(*k);
  EXPECT_TRUE(source) << to_text(source.error());
  return source ? source->text : "";
}

TEST(LowerLoops, SumsOverTurnsAreVariables) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100);
  b.loop("turn", b.number(0), n, b.number(1), [&](Term turn) {
    const Term before = b.carried(turn, "before", turn * 3 + 1);
    b.when(equals(floor_mod(before, 2), b.number(0)), [&] { b.issue("bulk.commit"); });
    b.when(less(b.number(5), before), [&] { b.issue("bulk.commit"); });
  });
  const std::string text = text_of(b);
  EXPECT_THAT(text, HasSubstr("int64_t before = 0;\n"));
  EXPECT_THAT(text, HasSubstr("    before += (turn * 3) + 1;\n  }\n"));
}

/// A loop over `steps` turns with a product in it where `products` says so, and a branch where the
/// counter is below `bound`.
std::string branched(bool products, const std::function<Term(Builder&, Term)>& condition) {
  Builder b("k", 128);
  const Term n = b.parameter("n", 1, 100);
  const core::SharedId a =
      b.shared("a", DType::bfloat16, Layout(IntTuple::flat({64, 64}), IntTuple::flat({64, 1})),
               arch::SwizzleMode::bytes_128);
  const core::RegistersId acc = b.registers(
      "acc", DType::float32, {64, 64}, *parse_layout("((4,8,4),(2,2,8)):((128,1,16),(64,8,512))"));
  b.loop("k", b.number(0), n, b.number(1), [&](Term k) {
    if (products) {
      b.issue("wgmma.fence");
      const Integers one{{b.number(1)}}, zero{{b.number(0)}};
      b.issue("wgmma.f32.bf16.bf16.ss",
              {core::Slice{acc, b.number(0)}, core::SharedAt{a, {b.number(0), b.number(0)}},
               core::SharedAt{a, {b.number(0), b.number(0)}}, one, one, one, zero, zero},
              {{"n", "64"}});
      b.issue("wgmma.commit");
      b.issue("wgmma.wait", {zero});
    }
    b.when(condition(b, k), [&] { b.issue("bulk.commit"); });
  });
  return text_of(b);
}

TEST(LowerLoops, ABranchUpToABoundIsALoopOfItsOwn) {
  const auto up_to = [](Builder& b, Term k) {
    return less(k, floor_div(b.kernel().parameters[0], 2));
  };
  const std::string text = branched(true, up_to);
  EXPECT_THAT(text, HasSubstr("for (; k_2 < n && k_2 < "));
  EXPECT_THAT(text, HasSubstr("for (; k_2 < n; ++k_2) {"));
  EXPECT_THAT(text, Not(HasSubstr("if (k_2 < ")));
  const std::size_t first = text.find("    bulk_commit();");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("    bulk_commit();", first + 1), std::string::npos) << text;
}

TEST(LowerLoops, ABranchAtBothEndsIsTwoLoopsOfThree) {
  const auto at_ends = [](Builder& b, Term k) {
    const Term n = b.kernel().parameters[0];
    return logical_or(less(k, floor_div(n, 3)), less_equal(n - 2, k));
  };
  const std::string text = branched(true, at_ends);
  EXPECT_THAT(text, Not(HasSubstr("if (k_2")));
  // The body with the branch, without, and with it again; each up to its bound.
  std::vector<std::size_t> loops, branches;
  for (std::size_t at = text.find("for (; k_2 < n"); at != std::string::npos;
       at = text.find("for (; k_2 < n", at + 1))
    loops.push_back(at);
  for (std::size_t at = text.find("    bulk_commit();"); at != std::string::npos;
       at = text.find("    bulk_commit();", at + 1))
    branches.push_back(at);
  ASSERT_EQ(loops.size(), 3U) << text;
  ASSERT_EQ(branches.size(), 2U) << text;
  EXPECT_LT(loops[0], branches[0]);
  EXPECT_LT(branches[0], loops[1]);
  EXPECT_LT(loops[2], branches[1]);
  EXPECT_THAT(text, HasSubstr("for (; k_2 < n && k_2 < (n - 2); ++k_2) {"));
  EXPECT_THAT(text, HasSubstr("for (; k_2 < n; ++k_2) {"));
}

TEST(LowerLoops, OtherBranchesStay) {
  // Without products there is nothing to gain; from a bound on is no such branch.
  const auto up_to = [](Builder& b, Term k) {
    return less(k, floor_div(b.kernel().parameters[0], 2));
  };
  EXPECT_THAT(branched(false, up_to), Not(HasSubstr("for (; ")));
  const auto from = [](Builder& b, Term k) {
    return less(floor_div(b.kernel().parameters[0], 2), k);
  };
  EXPECT_THAT(branched(true, from), Not(HasSubstr("for (; ")));
}

}  // namespace
}  // namespace tessera::lower
