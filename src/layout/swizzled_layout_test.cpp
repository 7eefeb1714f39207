// Swizzled layouts and the split lemma, by brute force.
#include "layout/swizzled_layout.h"

#include <map>

#include "layout/fit.h"
#include "layout/max_common.h"
#include "layout/split.h"
#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

SwizzledLayout S(std::string_view text) {
  return parse_swizzled_layout(text).value();
}

TEST(SwizzledLayout, PrintsAndParsesBack) {
  for (const char* text :
       {"swizzle(3,3,3) o 0 o (8,64):(64,1)", "swizzle(2,4,3) o 16 o (4,(2,8)):(1,(4,8))"})
    EXPECT_EQ(to_string(S(text)), text);
  EXPECT_EQ(S("(8,64):(64,1)"), SwizzledLayout(L("(8,64):(64,1)")));
  for (const char* text :
       {"swizzle(3,3,3) o (8,64):(64,1)", "swizzle(3,3,3) o -1 o 4:1", "swizzle(3,3,2) o 0 o 4:1",
        "swizzle(3,3,3)", "swizzle(3,3,3) o x o 4:1", "swizzle(3,3,3) o 0 o 4:1 "})
    EXPECT_FALSE(parse_swizzled_layout(text)) << text;
  EXPECT_EQ(parse_swizzled_layout("swizzle(3,3,3)").error().code, "TS0110");
}

TEST(SwizzledLayout, ActsOnTheRightAsFunctionsDo) {
  for_cases(35, 4, [](Random& r) {
    const SwizzledLayout a = r.swizzled(60);
    const Layout b = r.layout(24);
    const Result<SwizzledLayout> c = compose(a, b);
    EXPECT_EQ(c.has_value(), compose(a.layout(), b).has_value());
    if (!c) return false;
    for (int64_t i = 0; i < b.size(); ++i) EXPECT_EQ((*c)(i), a(b(i))) << to_string(a);
    for (int64_t i = 0; i < b.size(); ++i) EXPECT_EQ(coalesce(*c)(i), a(b(i))) << to_string(a);
    return true;
  });
}

TEST(SwizzledLayout, DividesAsItsLayoutDoes) {
  for_cases(10, 4, [](Random& r) {
    const SwizzledLayout a(r.swizzle(), 0, Layout::row_major({8, 4 * r.range(1, 4)}));
    const Tiler t = Tiler::by_mode({r.tile(8), r.tile(a.mode(1).size())});
    const Result<SwizzledLayout> z = zipped_divide(a, t);
    const Result<SwizzledLayout> l = logical_divide(a, t);
    EXPECT_EQ(z.has_value(), l.has_value());
    if (!z) return false;
    const int64_t rows = t.modes()[0].size();
    const int64_t columns = t.modes()[1].size();
    for (int64_t i = 0; i < z->mode(0).size(); ++i) {
      const int64_t row = t.modes()[0].whole()(i % rows);
      const int64_t column = t.modes()[1].whole()(i / rows);
      EXPECT_EQ(z->at({i, 0}), a.at({row, column})) << to_string(a) << " by " << to_string(t);
    }
    EXPECT_EQ(tiled_divide(a, t).value().rank(), 3);
    EXPECT_EQ(flat_divide(a, t).value()(1 % (rows * columns)), (*z)(1 % (rows * columns)));
    return true;
  });
}

TEST(SwizzledLayout, ASliceHasItsOffsetWithinTheSwizzle) {
  for_cases(25, 1, [](Random& r) {
    const SwizzledLayout a(r.swizzle(), r.range(0, 9), concat({r.layout(12), r.layout(12)}));
    const int64_t at = r.range(0, a.layout().mode(1).size() - 1);
    const SwizzledLayout s = slice(Coordinate::tuple({Coordinate(), at}), a).value();
    for (int64_t i = 0; i < s.size(); ++i) EXPECT_EQ(s(i), a.at({i, at})) << to_string(a);
    return true;
  });
}

TEST(SwizzledLayout, RecastReachesTheSameBits) {
  for_cases(30, 5, [](Random& r) {
    const SwizzledLayout a = r.swizzled(60, true);
    const int64_t from = int64_t{1} << r.range(0, 3);
    const int64_t to = r.one_in(8) ? 6 : int64_t{1} << r.range(0, 3);
    const Result<SwizzledLayout> c = recast(a, from, to);
    if (!c) return false;
    std::map<int64_t, int64_t> before, after;
    for (int64_t i = 0; i < a.size(); ++i)
      for (int64_t b = 0; b < from; ++b) ++before[a(i) * from + b];
    for (int64_t i = 0; i < c->size(); ++i)
      for (int64_t b = 0; b < to; ++b) ++after[(*c)(i)*to + b];
    EXPECT_EQ(before, after) << to_string(a) << ' ' << from << " as " << to;
    return true;
  });
  EXPECT_EQ(to_string(recast(S("swizzle(3,3,3) o 64 o (8,64):(64,1)"), 16, 8).value()),
            "swizzle(3,4,3) o 128 o (8,128):(128,1)");
  EXPECT_FALSE(recast(S("swizzle(3,0,3) o 0 o 64:1"), 16, 32)) << "pairs are moved apart";
  EXPECT_FALSE(recast(S("swizzle(3,3,3) o 1 o 64:1"), 16, 32)) << "begins in the middle";
}

TEST(SwizzledLayout, SameFunctionIsEqualityOfAllOffsets) {
  int same = 0;
  for_cases(35, 1, [&](Random& r) {
    const bool powers = r.one_in(2);
    const SwizzledLayout a = r.swizzled(16, powers);
    SwizzledLayout b = r.swizzled(16, powers);
    if (r.one_in(2)) b = {r.swizzle(), a.offset(), r.one_in(2) ? coalesce(a.layout()) : a.layout()};
    bool equal = a.size() == b.size();
    for (int64_t i = 0; equal && i < a.size(); ++i) equal = a(i) == b(i);
    EXPECT_EQ(same_function(a, b), equal) << to_string(a) << " and " << to_string(b);
    same += equal && a.swizzle() != b.swizzle() ? 1 : 0;
    return true;
  });
  EXPECT_GT(same, 5);
}

TEST(SwizzledLayout, IsPlainExactlyWhereSomeLayoutIsTheSame) {
  int swizzled = 0;
  for_cases(15, 4, [&](Random& r) {
    const SwizzledLayout a = r.swizzled(16);
    const Result<Slice> plain = without_swizzle(a);
    if (!plain) {
      const int64_t first = a(0);
      EXPECT_FALSE(layout::fit(a.layout().shape(), [&](int64_t i) { return a(i) - first; }));
      return false;
    }
    for (int64_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(plain->offset + plain->layout(i), a(i)) << to_string(a);
    swizzled += a.swizzle().bits > 0 ? 1 : 0;
    return true;
  });
  EXPECT_GT(swizzled, 5);
  EXPECT_FALSE(without_swizzle(S("swizzle(3,3,3) o 0 o (8,64):(64,1)")));
  // Row 5 of it: 16-byte columns in another order, so within a column only.
  EXPECT_EQ(without_swizzle(S("swizzle(3,3,3) o 320 o 8:1")).value().offset, 360);
}

TEST(SwizzledLayout, VectorsEndWhereASwizzleMovesElements) {
  for_cases(20, 1, [](Random& r) {
    const SwizzledLayout a = r.swizzled(64, true);
    const SwizzledLayout b = r.one_in(2) ? SwizzledLayout(a.layout()) : r.swizzled(64, true);
    const Layout c = max_common_layout(a, b);
    EXPECT_EQ(max_common_vector(a, b), c.size());
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(a(c(i)), a(0) + i) << to_string(a) << " and " << to_string(b);
      EXPECT_EQ(b(c(i)), b(0) + i) << to_string(a) << " and " << to_string(b);
    }
    return true;
  });
  EXPECT_EQ(max_common_vector(S("swizzle(3,3,3) o 0 o (8,64):(64,1)"), L("(8,64):(64,1)")), 8);
}

TEST(Split, HoldsForMultiplesOfThePeriodAndNoOthers) {
  for_cases(15, 1, [](Random& r) {
    const Swizzle s = r.swizzle();
    const int64_t divisor = r.one_in(2) ? int64_t{1} << r.range(0, 9) : r.range(1, 700);
    bool all = true;
    for (int64_t base = 0; base < 2048; base += divisor)
      for (int64_t f = 0; f < 300; f += 7) all = all && s(base + f) == base + s(f);
    const Status said = splits(s, divisor);
    EXPECT_EQ(said.has_value(), all) << to_string(s) << " at multiples of " << divisor;
    return true;
  });
  const Status no = splits(try_swizzle(3, 4, 3).value(), 512);
  EXPECT_EQ(no.error().code, "TS0112");
  EXPECT_EQ(no.error().notes.front(), "base 512 is moved to 576");
  EXPECT_TRUE(splits(try_swizzle(3, 4, 3).value(), 3072));
}

TEST(Split, OfOneBaseIsDecidedExactly) {
  int held = 0;
  for_cases(15, 1, [&](Random& r) {
    const Swizzle s = r.swizzle();
    const Layout f = r.layout(30);
    const int64_t base = r.range(0, 70);
    int64_t first = 0;
    while (first < f.size() && s(base + f(first)) == base + s(f(first))) ++first;
    const Status said = splits(s, base, f);
    EXPECT_EQ(said.has_value(), first == f.size()) << to_string(s) << ' ' << base;
    EXPECT_TRUE(said || said.error().data.at("index") == first);
    held += said && base % s.period() != 0 ? 1 : 0;
    return true;
  });
  EXPECT_GT(held, 5) << "bases that are no multiple of the period";
}

// Where base and f share no bits, the swizzle of the sum is the XOR of the swizzles.
TEST(Split, DisjointBitsSplitByXor) {
  for_cases(10, 1, [](Random& r) {
    const Swizzle s = r.swizzle();
    const int64_t a = int64_t{1} << r.range(0, 9);
    const int64_t base = a * r.range(0, 20);
    for (int64_t f = 0; f < a; ++f) EXPECT_EQ(s(base + f), s(base) ^ s(f)) << to_string(s);
    return true;
  });
}

}  // namespace
}  // namespace tessera
