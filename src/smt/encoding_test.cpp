// The value of a term under an assignment is the only one that its encoding has, by either way of
// writing numbers.
#include "smt/encoding.h"

#include <gtest/gtest.h>

#include "smt/search.h"
#include "smt/testing/many.h"
#include "term/testing/random_terms.h"

namespace tessera::smt {
namespace {

using namespace term;

// Values at which t can be evaluated, with those of what it reads.
std::optional<Assignment> random_point(Term t, std::mt19937_64& random) {
  Assignment a;
  for (const Axis& axis : term::testing::trial_axes({t}))
    a.symbols[axis.leaf->symbol->name] =
        axis.first + axis.step * static_cast<int64_t>(random() % static_cast<uint64_t>(axis.count));
  a.seed = 5;
  Assignment used = a;
  if (!evaluate(t, a, &used)) return std::nullopt;
  used.seed.reset();
  if (!admissible(symbols_of({t}), used)) return std::nullopt;
  return used;
}

// The symbols and reads have the values of `a`, and t has not `value`.
std::vector<Term> contradiction(Term t, const Assignment& a, int64_t value) {
  Pool& pool = t.pool();
  std::vector<Term> out;
  for (Term s : symbols_of({t}))
    out.push_back(equals(s, pool.constant(a.symbols.at(s->symbol->name))));
  for (const auto& [place, v] : a.reads) {
    std::vector<Term> at;
    for (const int64_t i : place.second) at.push_back(pool.constant(i));
    out.push_back(equals(*pool.read(pool.find(place.first), at), pool.constant(v)));
  }
  Term same = t;
  if (!t->predicate())
    same = equals(t, pool.constant(value));
  else if (value == 0)
    same = logical_not(t);
  out.push_back(logical_not(same));
  return out;
}

struct Tried {
  int decided = 0;
  int abstract = 0;
};

Tried try_terms(Tier by, uint64_t seed, int count) {
  Tried out;
  term::testing::RandomTerms random(seed);
  std::mt19937_64 points(seed);
  for (int i = 0; i < count; ++i) {
    if (i % 8 == 0) random.renew();
    const Term t = i % 4 == 3 ? random.predicate(3) : random.number(2 + i % 3);
    const auto a = random_point(t, points);
    if (!a) continue;
    const std::vector<Term> all = contradiction(t, *a, *evaluate(t, *a));
    const Found f = search(*library(), {all, all, {}}, {}, by);
    EXPECT_NE(f.answer, Answer::satisfiable)
        << to_string(t) << " at " << to_string(*a, random.pool()) << " has two values";
    // And the true value is one: the encoding is not empty.
    std::vector<Term> right = all;
    right.back() = logical_not(right.back());
    const Found there = search(*library(), {right, right, {}}, {}, by);
    EXPECT_NE(there.answer, Answer::unsatisfiable)
        << to_string(t) << " at " << to_string(*a, random.pool()) << " has no value";
    if (f.answer == Answer::unsatisfiable && there.answer == Answer::satisfiable)
      ++out.decided;
    else
      ++out.abstract;
    if (::testing::Test::HasFailure()) break;
  }
  return out;
}

class EncodingTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(library()) << to_text(library().error()); }
};

TEST_F(EncodingTest, IntegersHaveTheValuesOfTerms) {
  const Tried tried = try_terms(Tier::integers, 11, smt::testing::many(1400));
  EXPECT_GT(tried.decided, 1000);
  // Bitwise operators on unbounded numbers.
  EXPECT_LT(tried.abstract, tried.decided / 20);
}

TEST_F(EncodingTest, BitVectorsHaveTheValuesOfTerms) {
  const Tried tried = try_terms(Tier::bit_vectors, 12, smt::testing::many(2400));
  EXPECT_GT(tried.decided, 1000);
}

}  // namespace
}  // namespace tessera::smt
