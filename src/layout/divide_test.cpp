// Tilers, division and products: their laws, by coordinates.
#include "layout/divide.h"

#include <set>

#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

Tiler T(std::string_view text) {
  return parse_tiler(text).value();
}

Tiler some_tiler(Random& r, const Layout& a) {
  std::vector<Tiler> modes;
  const int64_t count = r.range(1, a.rank());
  for (int i = 0; i < count; ++i) {
    const Layout mode = a.mode(i);
    modes.push_back(!mode.shape().is_leaf && r.one_in(3) ? some_tiler(r, mode)
                                                         : Tiler(r.tile(mode.size())));
  }
  return Tiler::by_mode(std::move(modes));
}

TEST(Tiler, PrintsAndParsesBack) {
  for (const char* text : {"4:1", "<4:1,(2,3):(1,8)>", "<<2:1,3:2>,4:1>", "<>"})
    EXPECT_EQ(to_string(T(text)), text);
  EXPECT_EQ(T("<4,8>"), Tiler::of_shape(IntTuple::flat({4, 8})));
  EXPECT_EQ(T("<4,8>").size(), 32);
  for (const char* text : {"<4,8", "<4,8>>", "<4,x>", "4>"})
    EXPECT_FALSE(parse_tiler(text)) << text;
}

TEST(Tiler, ComposesModeByMode) {
  for_cases(40, 3, [](Random& r) {
    const Layout a = r.layout(100);
    const Tiler t = some_tiler(r, a);
    const Result<Layout> c = compose(a, t);
    if (!c) return false;
    EXPECT_EQ(c->size(), t.size());
    for (int i = 0; i < c->rank(); ++i) {
      if (t.modes()[i].is_by_mode()) continue;
      const Layout& tile = t.modes()[i].whole();
      for (int64_t k = 0; k < tile.size(); ++k)
        EXPECT_EQ(c->mode(i)(k), a.mode(i)(tile(k))) << to_string(a) << " o " << to_string(t);
    }
    return true;
  });
  EXPECT_EQ(compose(L("8:1"), T("<4,4>")).error().code, "TS0107");
}

/// The pair (tile, rest) of one mode: the mode's elements, tile by tile.
void expect_divided(const Layout& a, const Tiler& t, const Layout& pair) {
  if (t.is_by_mode()) {
    ASSERT_EQ(pair.rank(), a.rank());
    for (int i = 0; i < a.rank(); ++i) {
      if (i < static_cast<int>(t.modes().size())) {
        expect_divided(a.mode(i), t.modes()[i], pair.mode(i));
      } else {
        EXPECT_EQ(pair.mode(i), a.mode(i));
      }
    }
    return;
  }
  ASSERT_EQ(pair.rank(), 2);
  const Layout tile = t.whole();
  ASSERT_EQ(pair.mode(0).size(), tile.size());
  ASSERT_EQ(pair.size(), a.size());
  for (int64_t i = 0; i < tile.size(); ++i) EXPECT_EQ(pair.mode(0)(i), a(tile(i)));
  std::multiset<int64_t> before, after;
  for (int64_t i = 0; i < a.size(); ++i) before.insert(a(i)), after.insert(pair(i));
  EXPECT_EQ(before, after) << to_string(a) << " by " << to_string(t) << " is " << to_string(pair);
}

TEST(Divide, ReordersEveryModeTileByTile) {
  for_cases(60, 3, [](Random& r) {
    const Layout a = r.layout(100);
    const Tiler t = r.one_in(3) ? Tiler(r.tile(a.size())) : some_tiler(r, a);
    const Result<Layout> d = logical_divide(a, t);
    if (!d) return false;
    expect_divided(a, t, *d);
    return true;
  });
  EXPECT_FALSE(logical_divide(L("24:1"), T("5:1")));
  EXPECT_FALSE(logical_divide(L("24:1"), T("<4,4>")));
}

TEST(Divide, OfARegularLayoutByAShapeIsDefined) {
  for_cases(20, 1, [](Random& r) {
    const Layout a = Layout::row_major({4 * r.range(1, 3), 6 * r.range(1, 3), r.range(1, 3)});
    const Tiler t = Tiler::of_shape(IntTuple::flat({r.one_in(2) ? 2 : 4, r.one_in(2) ? 2 : 3}));
    const Result<Layout> z = zipped_divide(a, t);
    EXPECT_TRUE(z) << to_string(a) << " by " << to_string(t);
    const int64_t rows = t.modes()[0].size();
    const int64_t columns = t.modes()[1].size();
    const int64_t down = a.mode(0).size() / rows;
    const int64_t across = a.mode(1).size() / columns;
    for (int64_t i = r.range(0, 6); i < a.size(); i += 7) {
      const int64_t m = i % (rows * down);
      const int64_t n = i / (rows * down) % (columns * across);
      const int64_t k = i / (rows * down * columns * across);
      const int64_t tile = m % rows + n % columns * rows;
      EXPECT_EQ(z->at({tile, m / rows + n / columns * down + k * down * across}), a.at({m, n, k}));
    }
    return true;
  });
}

/// All forms of a division or product hold the same modes, those of `pairs` (rank 2 per tiled
/// mode).
void expect_forms(const Layout& pairs, int tiled, const Layout& zipped, const Layout& tiled_form,
                  const Layout& flat) {
  ASSERT_EQ(zipped.rank(), 2);
  const int modes = pairs.rank();
  ASSERT_EQ(flat.rank(), modes + tiled);
  ASSERT_EQ(tiled_form.rank(), 1 + modes);
  EXPECT_EQ(tiled_form.mode(0), zipped.mode(0));
  for (int i = 0; i < modes; ++i) {
    const Layout rest = i < tiled ? pairs.mode(i).mode(1) : pairs.mode(i);
    EXPECT_EQ(zipped.mode(1).mode(i), rest);
    EXPECT_EQ(tiled_form.mode(1 + i), rest);
    EXPECT_EQ(flat.mode(tiled + i), rest);
    if (i >= tiled) continue;
    EXPECT_EQ(zipped.mode(0).mode(i), pairs.mode(i).mode(0));
    EXPECT_EQ(flat.mode(i), pairs.mode(i).mode(0));
  }
}

TEST(Divide, FormsHoldTheSameModes) {
  for_cases(25, 3, [](Random& r) {
    const Layout a = concat({r.regular(12), r.regular(12), r.regular(4)});
    const Tiler t = Tiler::by_mode({r.tile(a.mode(0).size()), r.tile(a.mode(1).size())});
    const Result<Layout> d = logical_divide(a, t);
    if (!d) return false;
    expect_forms(*d, 2, zipped_divide(a, t).value(), tiled_divide(a, t).value(),
                 flat_divide(a, t).value());
    return true;
  });
  EXPECT_EQ(to_string(zipped_divide(L("(8,6):(6,1)"), T("<4,2>")).value()),
            "((4,2),(2,3)):((6,1),(24,2))");
  EXPECT_EQ(to_string(tiled_divide(L("(8,6):(6,1)"), T("<4>")).value()), "((4),2,6):((6),24,1)");
  EXPECT_EQ(to_string(flat_divide(L("(8,6):(6,1)"), T("<4,2>")).value()), "(4,2,2,3):(6,1,24,2)");
  EXPECT_EQ(to_string(zipped_divide(L("24:1"), T("4:1")).value()), "(4,6):(1,4)");
}

TEST(Product, RepeatsTheBlockWithoutOverlap) {
  for_cases(50, 3, [](Random& r) {
    const Layout block = r.regular(16);
    const Layout copies = r.regular(8);
    const Result<Layout> p = logical_product(block, copies);
    if (!p) return false;
    EXPECT_EQ(p->mode(0), block);
    EXPECT_EQ(p->mode(1).size(), copies.size());
    // Copies lie apart as often as their own layout says so, in its order.
    std::set<int64_t> offsets, distinct;
    for (int64_t i = 0; i < copies.size(); ++i) distinct.insert(copies(i));
    for (int64_t i = 0; i < p->size(); ++i) offsets.insert((*p)(i));
    EXPECT_EQ(offsets.size(), distinct.size() * block.size())
        << to_string(block) << " x " << to_string(copies);
    for (int64_t i = 1; i < copies.size(); ++i)
      EXPECT_EQ(p->mode(1)(i - 1) < p->mode(1)(i), copies(i - 1) < copies(i));
    return true;
  });
}

TEST(Product, FormsHoldTheSameModes) {
  for_cases(15, 3, [](Random& r) {
    const Layout block = concat({r.regular(8), r.regular(8)});
    const Tiler copies = Tiler::by_mode({r.regular(4), r.regular(4)});
    const Result<Layout> p = logical_product(block, copies);
    if (!p) return false;
    expect_forms(*p, 2, zipped_product(block, copies).value(), tiled_product(block, copies).value(),
                 flat_product(block, copies).value());
    return true;
  });
}

TEST(Product, BlockedAndRakedPairTheModes) {
  for_cases(20, 3, [](Random& r) {
    const Layout block = concat({L("2:1"), Layout(r.range(1, 4), 2)});
    const Layout copies = Layout::row_major({r.range(1, 3), r.range(1, 3)});
    const Result<Layout> b = blocked_product(block, copies);
    const Result<Layout> k = raked_product(block, copies);
    const Layout placed = logical_product(block, copies).value().mode(1);
    if (!b || !k) return false;
    for (int64_t m = 0; m < b->mode(0).size(); ++m)
      for (int64_t n = 0; n < b->mode(1).size(); ++n) {
        const int64_t rows = block.mode(0).size();
        const int64_t columns = block.mode(1).size();
        EXPECT_EQ(b->at({m, n}),
                  block.at({m % rows, n % columns}) + placed.at({m / rows, n / columns}));
        const int64_t down = copies.mode(0).size();
        const int64_t across = copies.mode(1).size();
        EXPECT_EQ(k->at({m, n}),
                  block.at({m / down, n / across}) + placed.at({m % down, n % across}));
      }
    return true;
  });
}

}  // namespace
}  // namespace tessera
