#include "check/formula.h"

#include <gtest/gtest.h>

namespace tessera::check {
namespace {

using Id = Formulas::Id;

/// Elements of a tensor whose index is the lane, moved.
Elements of(int tensor, int64_t by = 0) {
  Elements e{tensor, {0}, {}};
  for (int64_t lane = 0; lane < Elements::lanes; ++lane) e.at.push_back(lane + by);
  return e;
}

struct CheckFormula : testing::Test {
  Formulas f;
  Id x = f.elements(of(0)), y = f.elements(of(1)), z = f.elements(of(2));
  Id call(std::string_view name, std::vector<Id> arguments) {
    return f.call(*pointwise::find(name), std::move(arguments));
  }
  Id number(double v) { return f.number(v); }
};

TEST_F(CheckFormula, EqualElementsAreOneNumber) {
  EXPECT_EQ(f.elements(of(0)), x);
  EXPECT_NE(f.elements(of(0, 1)), x);
  EXPECT_NE(x, y);
}

TEST_F(CheckFormula, SumsAndProductsHaveOneForm) {
  EXPECT_EQ(call("add", {x, call("add", {y, z})}), call("add", {call("add", {z, x}), y}));
  EXPECT_EQ(call("mul", {number(2), call("mul", {x, number(0.5)})}), x);
  EXPECT_EQ(call("sub", {x, y}), call("add", {call("neg", {y}), x}));
  EXPECT_EQ(call("add", {number(1), number(2)}), number(3));
  EXPECT_EQ(call("maximum", {x, y}), call("maximum", {y, x}));
  EXPECT_NE(call("div", {x, y}), call("div", {y, x}));
  EXPECT_NE(call("add", {x, x}), x);
  EXPECT_EQ(call("relu", {number(-2)}), number(0));
}

TEST_F(CheckFormula, NothingIsNoFormula) {
  EXPECT_EQ(call("add", {x, Formulas::none}), Formulas::none);
  EXPECT_TRUE(f.sums_of(Formulas::none).empty());
}

TEST_F(CheckFormula, KnowsTheSumsOfAFormula) {
  using Ids = std::vector<Id>;
  const Id sum = f.elements({Elements::of_sum, {1, 2}, std::vector<int64_t>(64, 3)});
  const Id other = f.elements({Elements::of_sum, {1, 2}, std::vector<int64_t>(64, 4)});
  const Id further = f.elements({Elements::of_sum, {1, 2}, std::vector<int64_t>(64, 3), 1});
  EXPECT_NE(further, sum);
  EXPECT_EQ(f.sums_of(sum), Ids{sum});
  EXPECT_EQ(f.sums_of(call("add", {call("relu", {sum}), call("mul", {sum, x})})), Ids{sum});
  EXPECT_EQ(f.sums_of(call("add", {sum, other})), (Ids{sum, other}));
  EXPECT_EQ(f.sums_of(call("add", {call("mul", {further, other}), sum})),
            (Ids{sum, other, further}));
  EXPECT_TRUE(f.sums_of(x).empty());
  EXPECT_TRUE(f.sums_of(Formulas::none).empty());
  EXPECT_TRUE(f.differ(sum, further, 0));
}

TEST_F(CheckFormula, ValuesTellFormulasApart) {
  const auto scaled = [&](double by, Id of) { return call("mul", {number(by), of}); };
  // A factor above 0 may stand on either side of relu: another form, and the same values.
  const Id inside = call("relu", {scaled(0.5, x)}), outside = scaled(0.5, call("relu", {x}));
  EXPECT_NE(inside, outside);
  EXPECT_FALSE(f.differ(inside, outside, 0));
  EXPECT_TRUE(f.differ(call("relu", {scaled(-0.5, x)}), scaled(-0.5, call("relu", {x})), 0));
  EXPECT_TRUE(f.differ(x, y, 5));
  EXPECT_TRUE(f.differ(x, f.elements(of(0, 1)), 5));
  EXPECT_TRUE(f.differ(x, Formulas::none, 0));
}

TEST_F(CheckFormula, IsWrittenWithNamesOfItsElements) {
  const Id e = call("add", {call("relu", {call("mul", {x, number(0.5)})}), y});
  const std::string text =
      f.text(e, [](const Elements& l) { return fmt::format("T{}[{}]", l.tensor, l.at[7]); });
  EXPECT_EQ(text, "(T1[7] + relu(T0[7] * 0.5))");
  EXPECT_EQ(f.leaves(e), (std::vector<Id>{x, y}));
}

}  // namespace
}  // namespace tessera::check
