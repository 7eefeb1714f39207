// Whether offsets repeat, against enumeration.
#include <set>

#include "layout/testing/cases.h"

namespace tessera {
namespace {

using testing::for_cases;
using testing::L;
using testing::Random;

TEST(Injective, IsWhatEnumerationSays) {
  for_cases(300, 1, [](Random& r) {
    const Layout l = r.one_in(2) ? r.wild(100) : r.layout(100);
    std::set<int64_t> offsets;
    for (int64_t i = 0; i < l.size(); ++i) offsets.insert(l(i));
    EXPECT_EQ(is_injective(l), static_cast<int64_t>(offsets.size()) == l.size()) << to_string(l);
    return true;
  });
}

TEST(Injective, IsDecidedWithoutEnumerationWhereStridesDecide) {
  // A trillion elements each.
  EXPECT_TRUE(is_injective(L("(1048576,1048576):(1048576,1)")));
  EXPECT_FALSE(is_injective(L("(1048576,1048576):(1048575,1)")));
  EXPECT_FALSE(is_injective(L("(1048576,1048576):(1,1)")));
  // Two modes that overlap, under one that they do not reach.
  EXPECT_FALSE(is_injective(L("(4,3,1048576):(2,3,64)")));
}

}  // namespace
}  // namespace tessera
