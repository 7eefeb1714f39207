#include "layout/recast.h"

#include <map>

#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

/// How often each of the bits is reached by elements of `width` bits.
std::map<int64_t, int64_t> bits_of(const Layout& l, int64_t width) {
  std::map<int64_t, int64_t> out;
  for (int64_t i = 0; i < l.size(); ++i)
    for (int64_t b = 0; b < width; ++b) ++out[l(i) * width + b];
  return out;
}

TEST(Recast, ReachesTheSameBits) {
  for_cases(60, 5, [](Random& r) {
    const Layout l = r.one_in(4) ? r.layout(60) : r.regular(60, true);
    const int64_t from = r.one_in(5) ? 6 : int64_t{1} << r.range(0, 3);
    const int64_t to = r.one_in(5) ? 6 : int64_t{1} << r.range(0, 3);
    const Result<Layout> c = recast(l, from, to);
    if (!c) {
      EXPECT_EQ(c.error().code, "TS0109");
      return false;
    }
    EXPECT_EQ(c->size() * to, l.size() * from) << to_string(l);
    EXPECT_EQ(c->rank(), l.rank());
    EXPECT_EQ(bits_of(*c, to), bits_of(l, from)) << to_string(l) << ' ' << from << " as " << to;
    return from != to;
  });
}

TEST(Recast, NarrowElementsFollowTheirWideOne) {
  for_cases(20, 2, [](Random& r) {
    const int64_t n = int64_t{1} << r.range(1, 3);
    const Layout columns(r.range(1, 6), 1);
    const Layout l = concat({Layout(r.range(1, 4), n * r.range(1, 20)), columns});
    const Result<Layout> narrow = downcast(l, n);
    const bool one = l.mode(0).size() == 1 || l.mode(0).stride() != IntTuple(1);
    EXPECT_EQ(narrow.has_value(), one) << to_string(l);
    if (!narrow) return false;
    const Layout wide = upcast(*narrow, n).value();
    for (int64_t m = 0; m < l.mode(0).size(); ++m)
      for (int64_t c = 0; c < columns.size(); ++c)
        for (int64_t k = 0; k < n; ++k) {
          EXPECT_EQ(narrow->at({m, n * c + k}), n * l.at({m, c}) + k);
          EXPECT_EQ(wide.at({m, c}), l.at({m, c}));
        }
    return true;
  });
}

TEST(Recast, KnownCases) {
  EXPECT_EQ(to_string(recast(L("(8,64):(64,1)"), 16, 32).value()), "(8,32):(32,1)");
  EXPECT_EQ(to_string(recast(L("(8,64):(64,1)"), 16, 8).value()), "(8,128):(128,1)");
  EXPECT_EQ(to_string(recast(L("(2,2,5):(1,2,8)"), 8, 32).value()), "(1,1,5):(0,0,2)");
  EXPECT_EQ(to_string(recast(L("(1,8):(1,4)"), 16, 8).value()), "(2,8):(1,8)");
  EXPECT_EQ(to_string(recast(L("(3,8):(8,1)"), 6, 4).value()), "(3,12):(12,1)");
}

TEST(Recast, RefusesElementsReachedInPart) {
  for (const char* text : {"4:2", "3:1", "(2,4):(1,3)", "8:4", "(2,2):(1,1)"})
    EXPECT_EQ(recast(L(text), 16, 32).error().code, "TS0109") << text;
  for (const char* text : {"4:2", "(4,4):(1,1)", "4:0"})
    EXPECT_EQ(recast(L(text), 32, 16).error().code, "TS0109") << text;
  EXPECT_FALSE(recast(L("4:1"), 0, 16));
}

}  // namespace
}  // namespace tessera
