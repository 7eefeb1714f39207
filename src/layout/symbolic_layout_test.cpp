// Symbolic extents: what they say holds for every value of the parameters that is tried.
#include "layout/symbolic_layout.h"

#include "layout/split.h"
#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

using Parameters = std::map<std::string, int64_t>;

/// An extent made by adding and multiplying, and its value computed beside it.
struct Both {
  Extent extent;
  int64_t value;
};

Both some_extent(Random& r, const Parameters& p, int depth) {
  static const std::map<std::string, int64_t> divisors = {{"M", 6}, {"N", 1}, {"K", 4}};
  if (depth == 0 || r.one_in(4)) {
    if (r.one_in(3)) {
      const int64_t c = r.range(0, 12);
      return {c, c};
    }
    const std::string name = r.pick<std::string>({"M", "N", "K"});
    return {Extent::parameter(name, divisors.at(name)), p.at(name)};
  }
  const Both a = some_extent(r, p, depth - 1);
  const Both b = some_extent(r, p, depth - 1);
  if (r.one_in(2)) return {a.extent + b.extent, a.value + b.value};
  return {a.extent * b.extent, a.value * b.value};
}

Parameters some_parameters(Random& r) {
  return {{"M", 6 * r.range(1, 5)}, {"N", r.range(1, 20)}, {"K", 4 * r.range(1, 5)}};
}

TEST(Extent, IsItsValueForEveryParameter) {
  for_cases(15, 1, [](Random& r) {
    const Parameters p = some_parameters(r);
    const Both a = some_extent(r, p, 3);
    const Both b = some_extent(r, p, 2);
    EXPECT_EQ(a.extent.evaluate(p).value(), a.value) << to_string(a.extent);
    EXPECT_EQ(a.value % std::max<int64_t>(1, a.extent.divisor()), 0) << to_string(a.extent);
    EXPECT_EQ(a.extent * b.extent + b.extent, (a.extent + 1) * b.extent);
    EXPECT_TRUE(a.extent != b.extent || a.value == b.value);
    const int64_t by = r.range(1, 8);
    if (const Result<Extent> q = a.extent.divide(by)) {
      EXPECT_EQ(q->evaluate(p).value() * by, a.value) << to_string(a.extent) << " by " << by;
    }
    if (const Result<Extent> q = a.extent.divide_up(by)) {
      EXPECT_EQ(q->evaluate(p).value(), (a.value + by - 1) / by) << to_string(a.extent);
      if (const Result<Extent> again = q->divide_up(3)) {
        EXPECT_EQ(again->evaluate(p).value(), ((a.value + by - 1) / by + 2) / 3);
      }
    }
    return true;
  });
}

TEST(Extent, KnowsWhatItsParametersAreMultiplesOf) {
  const Extent m = Extent::parameter("M", 128);
  const Extent k = Extent::parameter("K");
  EXPECT_EQ(to_string(m * k + 64), "K*M + 64");
  EXPECT_EQ(to_string(m.divide(64).value()), "2*{M/128}");
  EXPECT_EQ(to_string(m.divide_up(256).value()), "{M^256}");
  EXPECT_EQ(to_string(Extent(0)), "0");
  EXPECT_EQ((m * k).divisor(), 128);
  EXPECT_TRUE(splits(try_swizzle(3, 3, 3).value(), (m * k * 4).divisor()));
  EXPECT_EQ(k.divide(2).error().code, "TS0113");
  EXPECT_EQ((k + 1).divide_up(2).error().code, "TS0113");
  EXPECT_FALSE(m.evaluate({{"M", 64}}));
  EXPECT_FALSE(m.evaluate({{"K", 64}}));
  EXPECT_FALSE(k.evaluate({{"K", 0}}));
}

TEST(SymbolicLayout, TilesAreThoseOfTheLayoutThatItBecomes) {
  for_cases(25, 3, [](Random& r) {
    const Parameters p = {
        {"M", 12 * r.range(1, 2)}, {"N", r.range(1, 3)}, {"K", 4 * r.range(1, 3)}};
    const Extent m = Extent::parameter("M", 12);
    const Extent n = Extent::parameter("N");
    const Extent k = Extent::parameter("K", 4);
    const auto a = r.one_in(2) ? SymbolicLayout::row_major({m, k, n})
                               : SymbolicLayout::tuple({{m, 1}, {k, m * n}, {n, m}});
    const Tiler t = Tiler::by_mode({r.tile(r.one_in(2) ? 6 : 12), r.tile(4)});
    const Result<SymbolicLayout> z = zipped_divide(a, t);
    if (!z) return false;
    const Layout fixed = a.evaluate(p).value();
    const Result<Layout> expected = zipped_divide(fixed, t);
    EXPECT_TRUE(expected) << to_string(a) << " by " << to_string(t);
    const Layout got = z->evaluate(p).value();
    EXPECT_EQ(got.size(), fixed.size());
    for (int64_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got(i), (*expected)(i)) << to_string(*z) << " by " << to_string(t);
    EXPECT_EQ(z->size(), a.size());
    EXPECT_EQ(compose(a, t).value(), z->mode(0));
    return true;
  });
}

TEST(SymbolicLayout, ATensorInTilesOfAKernel) {
  const Extent m = Extent::parameter("M", 128);
  const Extent k = Extent::parameter("K", 64);
  const SymbolicLayout a = SymbolicLayout::row_major({m, k});
  EXPECT_EQ(to_string(a), "(M,K):(K,1)");
  const Tiler tile = parse_tiler("<128,64>").value();
  const SymbolicLayout z = zipped_divide(a, tile).value();
  EXPECT_EQ(to_string(z), "((128,64),({M/128},{K/64})):((K,1),(128*K,64))");
  const Extent bm = Extent::parameter("bm");
  const Extent bk = Extent::parameter("bk");
  EXPECT_EQ(to_string(z.at({0, 0, bm, bk})), "64*bk + 128*K*bm");
  const SymbolicSlice block = slice(z, {std::nullopt, std::nullopt, bm, bk});
  EXPECT_EQ(to_string(block.layout), "((128,64)):((K,1))");
  EXPECT_EQ(block.offset, z.at({0, 0, bm, bk}));
  EXPECT_EQ(to_string(slice(z, {1, 2, 3, 4}).layout), "():()");
  EXPECT_EQ(to_string(a.evaluate({{"M", 256}, {"K", 64}}).value()), "(256,64):(64,1)");
}

TEST(SymbolicLayout, OffsetsOfKeptAndFixedLeavesAddUp) {
  for_cases(10, 1, [](Random& r) {
    const Extent k = Extent::parameter("K", 4);
    const auto l = SymbolicLayout::tuple({{k, 1}, SymbolicLayout(r.layout(30)), {6, k * 3}});
    std::vector<std::optional<Extent>> some;
    std::vector<Extent> all, kept;
    for (std::size_t i = 0; i < flatten(l.evaluate({{"K", 4}}).value().shape()).size(); ++i) {
      all.emplace_back(r.one_in(2) ? Extent(r.range(0, 9)) : Extent::parameter("x"));
      const bool fixed = r.one_in(2);
      some.push_back(fixed ? std::optional(all.back()) : std::nullopt);
      if (!fixed) kept.push_back(all.back());
    }
    const SymbolicSlice s = slice(l, some);
    EXPECT_EQ(s.layout.at(kept) + s.offset, l.at(all)) << to_string(l);
    return true;
  });
}

TEST(SymbolicLayout, TailsAreRefusedOrCovered) {
  const SymbolicLayout a = SymbolicLayout::row_major({Extent::parameter("M"), 64});
  const Tiler tile = parse_tiler("<128,32>").value();
  EXPECT_EQ(zipped_divide(a, tile).error().code, "TS0113");
  const SymbolicLayout z = zipped_divide(a, tile, Tail::cover).value();
  EXPECT_EQ(to_string(z), "((128,32),({M^128},2)):((64,1),(8192,32))");
  EXPECT_EQ(z.mode(1).mode(0).size().evaluate({{"M", 129}}).value(), 2);
  for (const char* t : {"<128,128>", "<128,32,1>", "128:1", "<<64,2>,32>"})
    EXPECT_EQ(compose(a, parse_tiler(t).value()).error().code, "TS0103") << t;
  EXPECT_EQ(SymbolicLayout(L("(4,(2,3)):(1,(12,4))")).evaluate({}).value(),
            L("(4,(2,3)):(1,(12,4))"));
}

}  // namespace
}  // namespace tessera
