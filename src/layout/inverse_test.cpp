// Inverses and the image, against enumeration.
#include "layout/inverse.h"

#include <map>
#include <set>

#include "layout/fit.h"
#include "layout/image.h"
#include "layout/max_common.h"
#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

std::set<int64_t> image(const Layout& l) {
  std::set<int64_t> out;
  for (int64_t i = 0; i < l.size(); ++i) out.insert(l(i));
  return out;
}

int64_t first_missing(const std::set<int64_t>& offsets) {
  int64_t n = 0;
  while (offsets.contains(n)) ++n;
  return n;
}

TEST(Image, FactsAreThoseOfEnumeration) {
  for_cases(70, 1, [](Random& r) {
    const Layout l = r.one_in(2) ? r.wild(100) : r.layout(100);
    const std::set<int64_t> offsets = image(l);
    EXPECT_EQ(image_size(l), offsets.size()) << to_string(l);
    EXPECT_EQ(is_injective(l), static_cast<int64_t>(offsets.size()) == l.size()) << to_string(l);
    EXPECT_EQ(covered_prefix(l), first_missing(offsets)) << to_string(l);
    const int64_t n = r.range(0, l.cosize() + 1);
    EXPECT_EQ(is_surjective(l, n), n <= first_missing(offsets)) << to_string(l) << " onto " << n;
    EXPECT_EQ(is_bijective(l), first_missing(offsets) == l.size() && *offsets.rbegin() < l.size());
    return true;
  });
}

TEST(Image, IsDecidedWithoutEnumerationWhereStridesDecide) {
  // A trillion elements each.
  EXPECT_TRUE(is_injective(L("(1048576,1048576):(1048576,1)")));
  EXPECT_TRUE(is_bijective(L("(1048576,1048576):(1048576,1)")));
  EXPECT_FALSE(is_injective(L("(1048576,1048576):(1048575,1)")));
  EXPECT_EQ(image_size(L("(1048576,1048576):(1,1)")), 2097151);
  // Two modes that overlap, under one that they do not reach.
  EXPECT_EQ(image_size(L("(4,3,1048576):(2,3,64)")), int64_t{11} * 1048576);
}

TEST(Inverse, OnTheRightFindsWhereOffsetsLie) {
  for_cases(55, 1, [](Random& r) {
    const Layout l = r.layout(100);
    const Layout right = right_inverse(l);
    for (int64_t i = 0; i < right.size(); ++i) EXPECT_EQ(l(right(i)), i) << to_string(l);
    std::vector<Layout> moving;
    const std::vector<int64_t> shape = flatten(l.shape());
    const std::vector<int64_t> stride = flatten(l.stride());
    for (std::size_t k = 0; k < shape.size(); ++k)
      if (stride[k] != 0) moving.emplace_back(shape[k], stride[k]);
    if (is_injective(concat(moving))) {
      EXPECT_EQ(right.size(), first_missing(image(l))) << to_string(l);
    }
    return true;
  });
  EXPECT_EQ(to_string(right_inverse(L("(8,4):(4,1)"))), "(4,8):(8,1)");
}

TEST(Inverse, OnTheLeftFindsTheIndexOfAnOffset) {
  for_cases(55, 2, [](Random& r) {
    const Layout l = r.layout(100);
    const Result<Layout> left = left_inverse(l);
    if (!left) {
      EXPECT_EQ(left.error().code, "TS0106");
      return false;
    }
    EXPECT_GE(left->size(), l.cosize());
    for (int64_t i = 0; i < l.size(); ++i) EXPECT_EQ((*left)(l(i)), i) << to_string(l);
    return true;
  });
  EXPECT_EQ(to_string(left_inverse(L("4:2")).value()), "(2,4):(0,1)");
  EXPECT_EQ(to_string(left_inverse(L("(2,2):(1,3)")).value()), "(3,2):(1,2)");
  EXPECT_FALSE(left_inverse(L("(4,2):(1,0)")));
  EXPECT_FALSE(left_inverse(L("(4,2):(1,2)")));
  EXPECT_FALSE(left_inverse(L("(2,2):(2,3)")));
}

// Whatever is injective and nests has one: modes that end before the next stride, a multiple of
// theirs.
TEST(Inverse, OnTheLeftIsDefinedWhereModesNest) {
  for_cases(20, 2, [](Random& r) {
    const Layout l = r.regular(100);
    const bool repeats = !is_injective(l);
    EXPECT_EQ(left_inverse(l).has_value(), !repeats) << to_string(l);
    return !repeats;
  });
}

TEST(Inverse, OfABijectionIsOneOnBothSides) {
  for_cases(25, 1, [](Random& r) {
    const Layout l = r.bijective(100);
    const Layout back = inverse(l).value();
    EXPECT_EQ(back.size(), l.size());
    for (int64_t i = 0; i < l.size(); ++i) {
      EXPECT_EQ(back(l(i)), i) << to_string(l);
      EXPECT_EQ(l(back(i)), i) << to_string(l);
    }
    const Layout other = r.layout(100);
    EXPECT_EQ(inverse(other).has_value(), is_bijective(other));
    return true;
  });
}

TEST(MaxCommon, IsTheLongestVectorThatBothSeeAlike) {
  for_cases(40, 2, [](Random& r) {
    const Layout a = r.regular(64);
    Layout b = r.one_in(3) ? a : r.regular(64);
    const Layout c = max_common_layout(a, b);
    EXPECT_EQ(max_common_vector(a, b), c.size());
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_EQ(a(c(i)), i) << to_string(a) << " and " << to_string(b);
      EXPECT_EQ(b(c(i)), i) << to_string(a) << " and " << to_string(b);
    }
    if (!is_injective(a) || !is_injective(b)) return false;
    std::map<int64_t, int64_t> at_a, at_b;
    for (int64_t i = 0; i < a.size(); ++i) at_a[a(i)] = i;
    for (int64_t i = 0; i < b.size(); ++i) at_b[b(i)] = i;
    int64_t n = 0;
    while (at_a.contains(n) && at_b.contains(n) && at_a[n] == at_b[n]) ++n;
    EXPECT_EQ(c.size(), n) << to_string(a) << " and " << to_string(b);
    return true;
  });
  EXPECT_EQ(max_common_vector(L("(8,4):(4,1)"), L("(8,4):(4,1)")), 32);
  EXPECT_EQ(max_common_vector(L("(8,4):(1,8)"), L("(8,4):(4,1)")), 1);
  EXPECT_EQ(max_common_vector(L("(8,4):(1,16)"), L("(8,4):(1,8)")), 8);
}

}  // namespace
}  // namespace tessera
