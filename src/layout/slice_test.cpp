#include "layout/slice.h"

#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

Coordinate C(std::string_view text) {
  return parse_coordinate(text).value();
}

TEST(Slice, PrintsParsesAndRefuses) {
  for (const char* text : {"_", "3", "(_,3)", "(_,(2,_))", "()"})
    EXPECT_EQ(to_string(C(text)), text);
  for (const char* text : {"(_", "(_,x)", "3)", ""}) EXPECT_FALSE(parse_coordinate(text)) << text;
  const Slice s = slice(C("(_,3)"), L("(4,8):(8,1)")).value();
  EXPECT_EQ(to_string(s.layout), "(4):(8)");
  EXPECT_EQ(s.offset, 3);
  EXPECT_EQ(to_string(dice(C("(_,3)"), L("(4,8):(8,1)")).value()), "(8):(1)");
  EXPECT_EQ(to_string(slice(C("(_,(2,_))"), L("(4,(3,5))")).value().layout), "(4,5):(1,12)");
  for (const char* text : {"(_,8)", "(_,-1)", "(_,_,_)", "((_,_),0)"})
    EXPECT_EQ(slice(C(text), L("(4,8):(8,1)")).error().code, "TS0108") << text;
}

/// Walks a coordinate and a layout together: the fixed and the kept leaves' indices, in order.
void split(Random& r, const Layout& l, int depth, Coordinate& c, std::vector<int64_t>& kept,
           std::vector<int64_t>& fixed, int64_t& offset) {
  if (l.shape().is_leaf || (depth > 0 && r.one_in(2))) {
    const int64_t at = r.range(0, l.size() - 1);
    offset += l(at);
    const bool hole = r.one_in(2);
    c = hole ? Coordinate() : Coordinate(at);
    (hole ? kept : fixed).push_back(at);
    return;
  }
  std::vector<Coordinate> items(l.rank());
  for (int i = 0; i < l.rank(); ++i) split(r, l.mode(i), depth + 1, items[i], kept, fixed, offset);
  c = Coordinate::tuple(std::move(items));
}

TEST(Slice, OffsetsOfKeptAndFixedModesAddUp) {
  for_cases(45, 1, [](Random& r) {
    const Layout l = concat({r.layout(20), r.layout(20)});
    Coordinate c;
    std::vector<int64_t> kept, fixed;
    int64_t offset = 0;
    split(r, l, 0, c, kept, fixed, offset);
    const Slice s = slice(c, l).value();
    EXPECT_EQ(s.layout.rank(), kept.size()) << to_string(c) << " of " << to_string(l);
    EXPECT_EQ(s.offset + s.layout.at(kept), offset) << to_string(c) << " of " << to_string(l);
    const Layout d = dice(c, l).value();
    EXPECT_EQ(d.rank(), fixed.size());
    EXPECT_EQ(d.at(fixed), s.offset);
    EXPECT_EQ(d.size() * s.layout.size(), l.size());
    return true;
  });
}

}  // namespace
}  // namespace tessera
