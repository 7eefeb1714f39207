// Every law of layout.h, checked for every coordinate by brute force over many small layouts.
#include "layout/layout.h"

#include <gtest/gtest.h>
#include <set>

#include "layout/swizzle.h"

namespace tessera {
namespace {

Layout L(const char* text) {
  return parse_layout(text).value();
}

std::vector<Layout> samples() {
  std::vector<Layout> out;
  for (const char* t :
       {"1:0", "8:1", "8:3", "(4,6):(1,4)", "(4,6):(6,1)", "(2,(3,4)):(12,(1,3))",
        "(4,2,3):(1,24,4)", "((2,2),(2,2)):((1,4),(2,8))", "(8,8):(8,1)", "(6,4):(0,1)",
        "(3,1,5):(5,7,1)", "(16,4):(4,1)", "(4,8):(16,2)", "((4,8),2):((2,8),1)", "12:2"})
    out.push_back(L(t));
  return out;
}

TEST(Layout, PrintsAndParsesBack) {
  for (const Layout& l : samples()) EXPECT_EQ(L(to_string(l).c_str()), l);
  EXPECT_EQ(to_string(L("(4,(2,3))")), "(4,(2,3)):(1,(4,8))");
  EXPECT_EQ(L("(4,(2,3)):(1,(12,4))")(4), 12);
  EXPECT_EQ(L("(4,(2,3)):(1,(12,4))").at({1, 2}), 5);
}

TEST(Layout, RefusesWhatIsNoLayout) {
  EXPECT_EQ(parse_layout("(4,2):(1,(4,8))").error().code, "TS0102");
  EXPECT_EQ(parse_layout("(4,0):(1,4)").error().code, "TS0102");
  EXPECT_EQ(parse_layout("(4,2").error().code, "TS0101");
  EXPECT_EQ(parse_layout("4:1x").error().code, "TS0102");
  EXPECT_THROW(Layout(IntTuple::flat({2, 2}), 1), std::logic_error);
}

TEST(Layout, CosizeBoundsEveryOffset) {
  for (const Layout& l : samples()) {
    int64_t most = 0;
    for (int64_t i = 0; i < l.size(); ++i) most = std::max(most, l(i));
    EXPECT_EQ(l.cosize(), most + 1) << to_string(l);
  }
}

TEST(Layout, CoalesceKeepsEveryOffset) {
  for (const Layout& l : samples()) {
    Layout c = coalesce(l);
    EXPECT_EQ(c.size(), l.size());
    for (int64_t i = 0; i < l.size(); ++i) EXPECT_EQ(c(i), l(i)) << to_string(l);
  }
  EXPECT_EQ(to_string(coalesce(L("(2,(1,6)):(1,(6,2))"))), "12:1");
}

TEST(Layout, ComposeIsFunctionComposition) {
  int done = 0;
  for (const Layout& a : samples())
    for (const Layout& b : samples()) {
      Result<Layout> r = compose(a, b);
      if (!r || b.cosize() > a.size()) continue;
      ++done;
      ASSERT_EQ(r->size(), b.size());
      for (int64_t i = 0; i < b.size(); ++i)
        ASSERT_EQ((*r)(i), a(b(i))) << to_string(a) << " o " << to_string(b);
    }
  EXPECT_GT(done, 60);
  EXPECT_EQ(compose(L("(4,6):(6,1)"), L("3:3")).error().code, "TS0103");
}

TEST(Layout, ComposeRefusesWhatLeavesTheDomain) {
  EXPECT_FALSE(compose(L("8:3"), L("8:3")));
}

TEST(Swizzle, IsAnInvolutionAndConflictFree) {
  const Swizzle s{.bits = 3, .base = 4, .shift = 3};
  EXPECT_EQ(s.period(), 1024);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 4096; ++i) {
    EXPECT_EQ(s(s(i)), i);
    EXPECT_EQ(s(i + s.period()), s(i) + s.period());
    seen.insert(s(i));
  }
  EXPECT_EQ(seen.size(), 4096u);
  std::set<int64_t> groups;  // one 16-byte column of 8 rows of 128 bytes lies in 8 bank groups
  for (int64_t row = 0; row < 8; ++row) groups.insert(s(row * 128 + 32) / 16 % 8);
  EXPECT_EQ(groups.size(), 8u);
}

}  // namespace
}  // namespace tessera
