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

// Values of all symbols at which the terms can be evaluated, with those of what they read.
std::optional<Assignment> random_point(const std::vector<Term>& terms, std::mt19937_64& random) {
  Assignment a;
  for (const Axis& axis : term::testing::trial_axes(terms))
    a.symbols[axis.leaf->symbol->name] =
        axis.first + axis.step * static_cast<int64_t>(random() % static_cast<uint64_t>(axis.count));
  a.seed = 5;
  Assignment used = a;
  for (Term t : terms)
    if (!evaluate(t, a, &used)) return std::nullopt;
  used.seed.reset();
  if (!admissible(symbols_of(terms), used)) return std::nullopt;
  return used;
}

// The symbols and reads have the values of `a`.
std::vector<Term> at_point(const std::vector<Term>& terms, const Assignment& a) {
  Pool& pool = terms[0].pool();
  std::vector<Term> out;
  for (Term s : symbols_of(terms))
    out.push_back(equals(s, pool.constant(a.symbols.at(s->symbol->name))));
  for (const auto& [place, v] : a.reads) {
    std::vector<Term> at;
    for (const int64_t i : place.second) at.push_back(pool.constant(i));
    out.push_back(equals(*pool.read(pool.find(place.first), at), pool.constant(v)));
  }
  return out;
}

Term has_value(Term t, int64_t value) {
  if (!t->predicate()) return equals(t, t.pool().constant(value));
  return value != 0 ? t : logical_not(t);
}

Answer answer(const std::vector<Term>& all, Tier by) {
  return search(*library(), {all, all, {}}, {}, by).answer;
}

struct Tried {
  int decided = 0;  // terms
  int open = 0;
};

// Terms of one pool are tried together: at the point all have their values, and none has another.
Tried try_terms(Tier by, uint64_t seed, int pools) {
  constexpr int together = 8;
  Tried out;
  term::testing::RandomTerms random(seed);
  std::mt19937_64 points(seed);
  for (int i = 0; i < pools && !::testing::Test::HasFailure(); ++i) {
    random.renew();
    std::vector<Term> terms;
    for (int k = 0; k < together; ++k)
      terms.push_back(k % 4 == 3 ? random.predicate(3) : random.number(2 + k % 3));
    const auto a = random_point(terms, points);
    if (!a) continue;
    std::vector<Term> right = at_point(terms, *a), wrong = right;
    Term another = random.pool().truth(false);
    for (Term t : terms) {
      right.push_back(has_value(t, *evaluate(t, *a)));
      another = logical_or(another, logical_not(right.back()));
    }
    wrong.push_back(another);
    const Answer has_another = answer(wrong, by), has_them = answer(right, by);
    EXPECT_NE(has_another, Answer::satisfiable)
        << to_string(another) << " at " << to_string(*a, random.pool());
    EXPECT_NE(has_them, Answer::unsatisfiable)
        << to_string(another) << " at " << to_string(*a, random.pool());
    const bool decided = has_another == Answer::unsatisfiable && has_them == Answer::satisfiable;
    (decided ? out.decided : out.open) += together;
  }
  return out;
}

class EncodingTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(library()) << to_text(library().error()); }
};

TEST_F(EncodingTest, IntegersHaveTheValuesOfTerms) {
  const Tried tried = try_terms(Tier::integers, 11, smt::testing::many(150));
  EXPECT_GT(tried.decided, 1000);
  // Bitwise operators on two unbounded numbers.
  EXPECT_LT(tried.open, tried.decided / 5);
}

TEST_F(EncodingTest, BitVectorsHaveTheValuesOfTerms) {
  const Tried tried = try_terms(Tier::bit_vectors, 12, smt::testing::many(650));
  EXPECT_GT(tried.decided, 1000);
}

}  // namespace
}  // namespace tessera::smt
