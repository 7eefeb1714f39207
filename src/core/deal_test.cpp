// Deals by brute force: each item once, and known again from its term alone.
#include "core/deal.h"

#include <gtest/gtest.h>
#include <set>

#include "core/builder.h"
#include "term/evaluate.h"
#include "term/rules.h"

namespace tessera::core {
namespace {

TEST(Deal, EachItemIsDealtOnce) {
  for (const bool alternates : {false, true}) {
    Builder b("k", 32);
    const Term n = b.parameter("n", 1, 100);
    const Term round = b.take(b.kernel().pool->parameter("round", {b.number(0), {}}));
    const Deal d{n, b.at().block, b.at().blocks, alternates};
    const Term rounds = rounds_of(d), item = item_of(d, round);
    for (int64_t items = 1; items <= 23; ++items)
      for (int64_t blocks = 1; blocks <= items; ++blocks) {
        std::multiset<int64_t> dealt;
        for (int64_t block = 0; block < blocks; ++block) {
          term::Assignment a{{{"n", items}, {"blocks", blocks}, {"block", block}}, {}, {}};
          const int64_t all = *term::evaluate(rounds, a);
          for (int64_t r = 0; r < all; ++r) {
            a.symbols["round"] = r;
            dealt.insert(*term::evaluate(item, a));
          }
        }
        std::multiset<int64_t> each;
        for (int64_t i = 0; i < items; ++i) each.insert(i);
        ASSERT_EQ(dealt, each) << items << " items, " << blocks << " blocks, " << alternates;
      }
  }
}

TEST(Deal, ATermTellsItsDeal) {
  for (const bool alternates : {false, true}) {
    Builder b("k", 32);
    const Term m = b.parameter("m", 1, 100), n = b.parameter("n", 1, 100);
    const Deal d{m * n, b.at().block, b.at().blocks, alternates};
    b.loop("turn", b.number(0), rounds_of(d), b.number(1), [&](Term turn) {
      const std::optional<Deal> found = deal_of(item_of(d, turn));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->items, term::simplify(d.items));
      EXPECT_EQ(found->block, d.block);
      EXPECT_EQ(found->alternates, alternates);
      EXPECT_FALSE(deal_of(item_of(d, turn) + 1));
      // Others may be deals, of another number of items.
      for (const Deal& other : {Deal{d.items, d.block + 1, d.blocks, alternates},
                                Deal{d.items, d.block, d.blocks, !alternates}}) {
        const std::optional<Deal> told = deal_of(item_of(other, turn));
        EXPECT_TRUE(!told || told->items != found->items);
      }
    });
  }
}

}  // namespace
}  // namespace tessera::core
