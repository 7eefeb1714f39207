// Correct products are proved to compute what they say; those with an edit of their data are not.
#include "check/flow.h"

#include <gtest/gtest.h>

#include "check/check.h"
#include "check/kind.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"

namespace tessera::check {
namespace {

using core::testing::GemmShape;

Means meaning(const core::Kernel& k) {
  const Result<std::optional<Means>> m = means_of(k);
  EXPECT_TRUE(m && *m) << k.means;
  return m && *m ? **m : Means{};
}

TEST(CheckFlow, CorrectProductsAreProved) {
  for (const GemmShape& s :
       {GemmShape{.stages = 2}, GemmShape{.bn = 192, .stages = 2},
        GemmShape{.bm = 64, .bn = 64, .stages = 2}, GemmShape{.bn = 128, .stages = 2, .band = 1},
        GemmShape{.stages = 2, .element = DType::float16}}) {
    const Result<core::Kernel> k = core::testing::gemm(s);
    ASSERT_TRUE(k);
    const Report r = check(*k, {}, meaning(*k));
    EXPECT_EQ(r.verdict(), Verdict::proved) << s.bm << " " << s.bn << "\n" << to_text(r);
    // Of one part alone the wait of the others is never executed.
    EXPECT_EQ(r.coverage.reached, r.coverage.all() - (s.bn == 64 ? 1 : 0));
  }
}

TEST(CheckFlow, EditsOfDataAreRefuted) {
  const Result<core::Kernel> k = core::testing::gemm({.bn = 128, .stages = 2});
  ASSERT_TRUE(k);
  int all = 0;
  for (const core::testing::Mutant& m : core::testing::mutants(*k)) {
    if (m.breaks != core::testing::Breaks::data) continue;
    const Report r = check(m.kernel, {}, meaning(*k));
    ++all;
    EXPECT_EQ(r.verdict(), Verdict::refuted) << m.name << " " << m.site << ": " << m.edit << "\n"
                                             << to_text(r);
  }
  EXPECT_GT(all, 20);
}

TEST(CheckFlow, AnotherMeaningIsRefuted) {
  const Result<core::Kernel> k = core::testing::gemm({.bn = 128, .stages = 2});
  Means turned = meaning(*k);
  std::swap(turned.outputs[0].to.at[0], turned.outputs[0].to.at[1]);
  EXPECT_NE(check(*k, {}, turned).verdict(), Verdict::proved);
  EXPECT_EQ(check(*k).find("placement")->verdict, Verdict::unknown);
}

TEST(CheckFlow, ATensorThatIsNoFactorIsRefuted) {
  core::Kernel k =
      *core::testing::gemm({.bn = 128, .stages = 2, .epilogue = core::testing::Epilogue::residual});
  const auto means = means_of(k);
  ASSERT_TRUE(means && *means);
  const auto tensor = [&](std::string_view name) {
    for (std::size_t t = 0; t < k.tensors.size(); ++t)
      if (k.tensors[t].name == name) return core::TensorId(static_cast<int32_t>(t));
    ADD_FAILURE() << name;
    return core::TensorId(0);
  };
  const auto verdict = [&](core::TensorId t) {
    k.maps[0].tensor = t;
    const Report r = check(k, {}, **means);
    return std::pair(r.find("k_agreement")->verdict, to_text(r));
  };
  ASSERT_EQ(verdict(tensor("A")).first, Verdict::proved);
  const auto [residual, text] = verdict(tensor("X1"));
  EXPECT_EQ(residual, Verdict::refuted) << text;
  EXPECT_NE(text.find("found: `X1`"), std::string::npos) << text;
  const auto [twice, why] = verdict(tensor("B"));
  EXPECT_EQ(twice, Verdict::refuted) << why;
  EXPECT_NE(why.find("no copy is of this one"), std::string::npos) << why;
  // Exchanged, both of them are brought.
  k.maps[1].tensor = tensor("A");
  EXPECT_EQ(verdict(tensor("B")).first, Verdict::unknown);
}

}  // namespace
}  // namespace tessera::check
