// Index expressions of kernels: what is true of them is proved, what is nearly true is refuted with
// a witness.
#include "term/testing/corpus.h"

#include <gtest/gtest.h>

namespace tessera::term::testing {
namespace {

class CorpusTest : public ::testing::TestWithParam<Claim> {
 protected:
  void SetUp() override { declare_symbols(pool); }
  Verdict judge(const Claim& c, const Terms& q) {
    if (c.kind == Claim::Kind::always) return always(q.left);
    if (c.kind == Claim::Kind::equal) return equal(q.left, q.right);
    return is_injective(q.left, q.coordinates);
  }
  Pool pool;
};

TEST_P(CorpusTest, HasItsVerdict) {
  const Claim& c = GetParam();
  const Terms q = terms_of(pool, c);
  const Verdict v = judge(c, q);
  EXPECT_EQ(v.outcome, c.outcome) << c.left << (c.kind == Claim::Kind::equal ? " == " : " ")
                                  << c.right << "\n"
                                  << to_string(v, pool);
  if (v.refuted()) {
    EXPECT_EQ(fault_of_witness(c, q, v), "") << to_string(v, pool);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CorpusTest, ::testing::ValuesIn(claims()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace tessera::term::testing
