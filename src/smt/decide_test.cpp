// Which tier decides the index expressions of kernels.
#include <gtest/gtest.h>

#include "smt/query.h"
#include "term/testing/corpus.h"

namespace tessera::smt {
namespace {

using namespace term;
using term::testing::Claim;

Question asked(const Claim& c, const term::testing::Terms& t) {
  if (c.kind == Claim::Kind::always) return {Question::Kind::always, {t.left}, {}};
  if (c.kind == Claim::Kind::equal) return {Question::Kind::equal, {t.left, t.right}, {}};
  return {Question::Kind::is_injective, {t.left}, t.coordinates};
}

// Every claim in turn, with its terms and a pool of its own.
template <class Check>
void each_claim(Check&& check) {
  ASSERT_TRUE(library()) << to_text(library().error());
  for (const Claim& c : term::testing::claims()) {
    SCOPED_TRACE(c.name);
    Pool pool;
    term::testing::declare_symbols(pool);
    check(c, term::testing::terms_of(pool, c), pool);
  }
}

TEST(Decide, EveryClaimIsDecidedByTermsWhereTheyCan) {
  each_claim([](const Claim& c, const term::testing::Terms& terms, const Pool& pool) {
    const Decision d = decide(asked(c, terms));
    const bool left_open = c.outcome == Outcome::unknown;
    EXPECT_EQ(d.verdict.outcome, left_open ? Outcome::proved : c.outcome)
        << to_string(d.verdict, pool);
    EXPECT_EQ(d.by, left_open ? Tier::integers : Tier::terms) << name_of(d.by);
    EXPECT_EQ(d.work > 0, left_open);
  });
}

TEST(Decide, Z3AloneDecidesTheSame) {
  each_claim([](const Claim& c, const term::testing::Terms& terms, const Pool& pool) {
    const Verdict v = ask(asked(c, terms)).verdict;
    EXPECT_EQ(v.outcome, c.outcome == Outcome::unknown ? Outcome::proved : c.outcome)
        << to_string(v, pool);
    if (v.refuted()) {
      EXPECT_EQ(fault_of_witness(c, terms, v), "") << to_string(v, pool);
    }
  });
}

TEST(Decide, UnknownHasTheReasonsOfBoth) {
  Pool pool;
  const Term p = *pool.parameter("p", {pool.constant(2), pool.constant(int64_t{1} << 31)});
  const Term q = *pool.parameter("q", {pool.constant(2), pool.constant(int64_t{1} << 31)});
  const Term claim = logical_not(equals(p * q, pool.constant(4611685795089090127)));
  const Decision d = decide({Question::Kind::always, {claim}, {}}, {}, {100'000});
  EXPECT_EQ(d.verdict.outcome, Outcome::unknown);
  EXPECT_EQ(d.by, Tier::none);
  const Verdict first = term::always(claim);
  EXPECT_TRUE(d.verdict.reason.starts_with(first.reason + "; Z3 ")) << d.verdict.reason;
}

}  // namespace
}  // namespace tessera::smt
