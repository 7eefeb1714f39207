// Verdicts of Z3 against those of index arithmetic, and against enumeration.
#include "smt/query.h"

#include <gtest/gtest.h>

#include "smt/search.h"
#include "smt/testing/many.h"
#include "term/testing/agreement.h"

namespace tessera::smt {
namespace {

using namespace term;

class SmtTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(library()) << to_text(library().error()); }

  Term T(const char* text) { return parse(pool, text).value(); }
  Bounds from(int64_t low) { return {.lower = pool.constant(low)}; }
  Bounds between(int64_t low, int64_t end) {
    return {.lower = pool.constant(low), .upper = pool.constant(end)};
  }
  std::string text(const Verdict& v) { return to_string(v, pool); }

  Pool pool;
};

// The first admissible trial point at which p is false; "" if there is none.
std::string counterexample(Term p) {
  int64_t compared = 0;
  return term::testing::disagreement(p, p.pool().truth(true), compared);
}

constexpr Limits little{300'000};

TEST_F(SmtTest, VerdictsOnRandomPredicatesAreRight) {
  term::testing::RandomTerms random(21);
  int proved = 0, refuted = 0, unknown = 0;
  for (int i = 0; i < smt::testing::many(600); ++i) {
    if (i % 8 == 0) random.renew();
    const Term p = random.predicate(3);
    const Verdict v = smt::always(p, little), other = term::always(p);
    if (v.proved()) {
      ++proved;
      ASSERT_EQ(counterexample(p), "") << v.reason;
      ASSERT_FALSE(other.refuted()) << to_string(p) << " " << to_string(other, random.pool());
    } else if (v.refuted()) {
      ++refuted;
      const Result<int64_t> value = evaluate(p, v.witness);
      ASSERT_TRUE(value && *value == 0) << to_string(p) << " " << to_string(v, random.pool());
      ASSERT_TRUE(admissible(symbols_of({p}), v.witness)) << to_string(v, random.pool());
      ASSERT_FALSE(other.proved()) << to_string(p) << " " << other.reason;
    } else {
      ++unknown;
    }
  }
  EXPECT_GT(proved, 30);
  EXPECT_GT(refuted, 450);
  EXPECT_LT(unknown, (proved + refuted) / 20);
}

TEST_F(SmtTest, VerdictsOnRandomEquationsAreRight) {
  term::testing::RandomTerms random(22);
  int proved = 0, refuted = 0, unknown = 0;
  for (int i = 0; i < smt::testing::many(400); ++i) {
    if (i % 8 == 0) random.renew();
    Pool& pool = random.pool();
    const Term t = random.number(3), other = random.number(2);
    const Term nearly =
        t + pool.must(Op::select, {random.predicate(2), pool.constant(0), pool.constant(1)});
    const std::vector<Term> conjunction{
        logical_not(equals(t, i % 2 == 0 ? simplify(t + other) - other : nearly))};
    // Not by the normal form, which would do all the work.
    const Found f = search(*library(), {conjunction, conjunction, {}}, little);
    if (f.answer == Answer::unsatisfiable) {
      ++proved;
      ASSERT_EQ(counterexample(logical_not(conjunction[0])), "") << f.reason;
    } else if (f.answer == Answer::satisfiable) {
      ++refuted;
      ASSERT_EQ(i % 2, 1) << to_string(conjunction[0]) << " at " << to_string(f.model, pool);
    } else {
      ++unknown;
    }
  }
  EXPECT_GT(proved, 150);
  EXPECT_GT(refuted, 50);
  EXPECT_LT(unknown, (proved + refuted) / 10);
}

TEST_F(SmtTest, VerdictsOnInjectivityAreRight) {
  term::testing::RandomTerms random(23);
  int proved = 0, refuted = 0;
  for (int i = 0; i < smt::testing::many(200); ++i) {
    if (i % 8 == 0) random.renew();
    Pool& pool = random.pool();
    const Term x = pool.symbol(pool.find("x")), y = pool.symbol(pool.find("y"));
    const Term t = i % 3 == 0 ? x * 16 + bit_xor(y, random.number(1)) : random.number(3);
    const std::vector<Term> coordinates = i % 2 == 0 ? std::vector{x} : std::vector{x, y};
    const Verdict v = smt::is_injective(t, coordinates, little);
    const Verdict other = term::is_injective(t, coordinates);
    if (v.proved()) ++proved;
    ASSERT_FALSE(v.proved() && other.refuted()) << to_string(t) << to_string(other, pool);
    ASSERT_FALSE(v.refuted() && other.proved()) << to_string(t) << to_string(v, pool);
    if (!v.refuted()) continue;
    ++refuted;
    const Result<int64_t> a = evaluate(t, v.witness), b = evaluate(t, v.other);
    ASSERT_TRUE(a && b && *a == *b) << to_string(t) << " " << to_string(v, pool);
    std::vector<Term> terms = coordinates;
    terms.push_back(t);
    ASSERT_TRUE(admissible(symbols_of(terms), v.witness)) << to_string(v, pool);
    ASSERT_TRUE(admissible(symbols_of(terms), v.other)) << to_string(v, pool);
    Assignment moved = v.witness;
    for (Term c : coordinates) moved.symbols[c->symbol->name] = v.other.symbols.at(c->symbol->name);
    ASSERT_EQ(moved, v.other) << "they differ in more than the coordinates";
    ASSERT_NE(v.witness, v.other);
  }
  EXPECT_GT(proved, 30);
  EXPECT_GT(refuted, 80);
}

TEST_F(SmtTest, SwizzlesAgreeWithoutTheirNormalForm) {
  (void)*pool.coordinate("row", 64);
  (void)*pool.coordinate("col", 64);
  const Term formula = T("row * 128 + (2 * col ^ row % 8 * 16)");
  const Term address = T("(row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 & 7) << 4");
  const Term other = T("(row * 128 + 2 * col) ^ ((row * 128 + 2 * col) >> 7 & 3) << 4");
  const auto found = [&](Term claim, Tier by) {
    const std::vector<Term> conjunction{logical_not(claim)};
    return search(*library(), {conjunction, conjunction, {}}, {}, by);
  };
  for (const Tier by : {Tier::bit_vectors, Tier::integers}) {
    EXPECT_EQ(found(equals(formula, address), by).answer, Answer::unsatisfiable);
    const Found wrong = found(equals(formula, other), by);
    ASSERT_EQ(wrong.answer, Answer::satisfiable) << wrong.reason;
    EXPECT_EQ(to_string(wrong.model, pool), "row = 4, col = 0");
    EXPECT_EQ(wrong.by, by);
  }
}

TEST_F(SmtTest, BitsOfUnboundedNumbersAreExactBesideNarrowOnes) {
  (void)*pool.parameter("base", {.lower = pool.constant(0), .modulus = 1024});
  (void)*pool.parameter("E", {});
  (void)*pool.coordinate("row", 64);
  (void)*pool.coordinate("s", 9);
  EXPECT_TRUE(smt::equal(T("base + (row * 16 ^ row % 8 * 16)"), T("base + row * 16 ^ row % 8 * 16"))
                  .proved());
  EXPECT_TRUE(smt::equal(T("(E ^ row) ^ row"), T("E")).proved());
  EXPECT_TRUE(smt::equal(T("(E & s - 4) + (E | s - 4)"), T("E + s - 4")).proved());
  EXPECT_TRUE(smt::equal(T("E ^ s - 4"), T("(E | s - 4) - (E & s - 4)")).proved());
  EXPECT_TRUE(smt::always(T("(E | row) >= E")).proved());
  const Verdict v = smt::always(T("(E | s - 4) >= E"));
  ASSERT_TRUE(v.refuted()) << text(v);
  // Two wide operands are any function: what that does not decide is open.
  EXPECT_TRUE(smt::equal(T("(E ^ base) + 1"), T("1 + (E ^ base)")).proved());
  EXPECT_FALSE(smt::always(T("(E & base) <= base")).refuted());
}

TEST_F(SmtTest, ParametersAsDivisorsAreDecided) {
  (void)*pool.parameter("M", from(1));
  (void)*pool.parameter("N", from(1));
  (void)*pool.counter("m", T("0"), T("M"));
  (void)*pool.counter("n", T("0"), T("N"));
  (void)*pool.coordinate("lane", 32);
  EXPECT_TRUE(smt::in_range(T("m * N + n"), T("0"), T("M * N")).proved());
  EXPECT_TRUE(smt::in_range(T("m * N + n + 1"), T("0"), T("M * N")).refuted());
  EXPECT_TRUE(smt::equal(T("(m * N + n + lane * N) // N"), T("m + lane")).proved());
  EXPECT_TRUE(smt::always(T("(m * N + n) // N * N + lane % N < M * N")).proved());
  const Verdict v = smt::is_injective(T("m * N + n"), {T("m"), T("n")});
  EXPECT_TRUE(v.proved()) << text(v);
  EXPECT_TRUE(smt::is_injective(T("m * N + 2 * n"), {T("m"), T("n")}).refuted());
}

TEST_F(SmtTest, ReadsAreFunctionsWithinTheirBounds) {
  (void)*pool.parameter("T", from(0));
  (void)*pool.coordinate("x", 64);
  (void)*pool.coordinate("y", 64);
  (void)*pool.memory("perm", 1, {.lower = pool.constant(0), .upper = T("T")});
  (void)*pool.memory("rows", 2, {.lower = pool.constant(0), .modulus = 8});
  EXPECT_TRUE(smt::always(T("not (x == y) or perm[x] == perm[y]")).proved());
  EXPECT_TRUE(smt::always(T("perm[perm[x]] < T and T > 0")).proved());
  EXPECT_TRUE(smt::equal(T("rows[x, y] % 8 + rows[x, y + x - y]"), T("rows[x, x]")).proved());
  const Verdict v = smt::equal(T("perm[x]"), T("perm[y]"));
  ASSERT_TRUE(v.refuted()) << text(v);
  EXPECT_EQ(v.witness.symbols.at("T"), 2) << text(v);
  EXPECT_EQ(v.witness.reads.size(), 2U);
  // Without T > 0 nothing can be read, and nothing is.
  const Verdict guarded = smt::always(T("not (select(T > 0, perm[x], 5) == 5)"));
  ASSERT_TRUE(guarded.refuted()) << text(guarded);
  EXPECT_EQ(guarded.witness.symbols.at("T"), 0);
  EXPECT_TRUE(smt::always(T("T > 0 and perm[x] < T")).refuted());
  EXPECT_TRUE(smt::always(T("T <= 0 or perm[x] < T")).proved());
}

TEST_F(SmtTest, WitnessesAreSmall) {
  (void)*pool.parameter("K", from(1));
  (void)*pool.parameter("E", {});
  (void)*pool.parameter("ld", {.lower = pool.constant(8), .modulus = 8});
  EXPECT_EQ(text(smt::always(T("K * 3 < 1000000"))), "refuted at K = 333334");
  EXPECT_EQ(text(smt::always(T("E > -50"))), "refuted at E = -50");
  EXPECT_EQ(text(smt::in_range(T("K * ld"), T("0"), T("2147483648"))),
            "refuted at K = 1, ld = 2147483648");
}

TEST_F(SmtTest, EmptyRangesMakeClaimsTrue) {
  (void)*pool.parameter("N", between(0, 9));
  (void)*pool.counter("j", T("0"), T("N"));
  (void)*pool.counter("never", T("5"), T("3"));
  (void)*pool.parameter("none", {pool.constant(5), pool.constant(7), 4, 0});
  EXPECT_TRUE(smt::always(T("j * 0 + N > 0")).proved());
  EXPECT_TRUE(smt::always(T("N > 0")).refuted());
  EXPECT_TRUE(smt::always(T("never == 77 * N")).proved());
  EXPECT_TRUE(smt::always(T("none * N * N == 3")).proved());
}

TEST_F(SmtTest, SatisfiableGivesAModel) {
  (void)*pool.parameter("K", from(0));
  (void)*pool.coordinate("lane", 32);
  const Satisfiability s = satisfiable({T("K % 7 == lane"), T("K > 100"), T("lane > 2")});
  ASSERT_EQ(s.answer, Answer::satisfiable) << s.reason;
  for (const char* p : {"K % 7 == lane", "K > 100", "lane > 2"})
    EXPECT_EQ(*evaluate(T(p), s.model), 1) << p;
  EXPECT_EQ(s.by, Tier::integers);
  EXPECT_GT(s.work, 0);
  EXPECT_EQ(satisfiable({T("K % 7 == lane"), T("lane > 6")}).answer, Answer::unsatisfiable);
  EXPECT_EQ(satisfiable({T("lane > 31")}).by, Tier::terms);
}

TEST_F(SmtTest, LittleWorkIsUnknownAndAlwaysTheSame) {
  (void)*pool.parameter("p", between(2, int64_t{1} << 31));
  (void)*pool.parameter("q", between(2, int64_t{1} << 31));
  // The product of two primes near 2^31.
  const Term claim = T("not (p * q == 4611685795089090127)");
  const Decision a = ask({Question::Kind::always, {claim}, {}}, {200'000});
  EXPECT_EQ(a.verdict.outcome, Outcome::unknown) << text(a.verdict);
  EXPECT_NE(a.verdict.reason.find("200000 units"), std::string::npos) << a.verdict.reason;
  EXPECT_EQ(a.by, Tier::none);
  EXPECT_EQ(ask({Question::Kind::always, {claim}, {}}, {200'000}).work, a.work);
  EXPECT_LT(a.work, 800'000);
}

TEST_F(SmtTest, WhatCannotBeEvaluatedIsUnknown) {
  (void)*pool.parameter("K", from(0));
  const Verdict v = smt::always(T("4 * K <= 9223372036854775807"));
  EXPECT_EQ(v.outcome, Outcome::unknown) << text(v);
  EXPECT_NE(v.reason.find("cannot be evaluated in 64 bits"), std::string::npos) << v.reason;
  // As integers they are equal.
  EXPECT_TRUE(smt::always(T("4 * K * K - 2 * K <= 4 * K * K")).proved());
}

}  // namespace
}  // namespace tessera::smt
