// Declarations, hash-consing, text, and evaluation.
#include "term/term.h"

#include <gtest/gtest.h>

#include "term/evaluate.h"
#include "term/testing/random_terms.h"

namespace tessera::term {
namespace {

class TermTest : public ::testing::Test {
 protected:
  void SetUp() override {
    (void)pool.coordinate("lane", 32).value();
    (void)pool.coordinate("r", 64).value();
    (void)pool.parameter("m", {pool.constant(0)}).value();
    (void)pool.parameter("S", {pool.constant(1)}).value();
    (void)pool.memory("perm", 1, {pool.constant(0), pool.constant(8)}).value();
    (void)pool.memory("table", 2).value();
  }
  Term T(std::string_view text) {
    Result<Term> t = parse(pool, text);
    EXPECT_TRUE(t) << text << ": " << (t ? "" : to_text(t.error()));
    return t ? *t : pool.constant(0);
  }
  std::string code(std::string_view text) {
    const Result<Term> t = parse(pool, text);
    return t ? "none" : t.error().code;
  }
  int64_t value(std::string_view text) {
    Assignment a;
    a.symbols = {{"lane", 7}, {"r", 10}, {"m", 3}, {"S", 4}};
    a.reads[{"perm", {3}}] = 5;
    const Result<int64_t> v = evaluate(T(text), a);
    EXPECT_TRUE(v) << text << (v ? "" : v.error().message);
    return v.value_or(-999);
  }
  Pool pool;
};

TEST_F(TermTest, EqualTextIsTheSameNode) {
  EXPECT_EQ(T("m * 128 + lane // 4"), T("m*128+(lane//4)"));
  EXPECT_NE(T("lane + r"), T("r + lane"));
  EXPECT_EQ(pool.coordinate("lane", 32).value(), T("lane"));
}

TEST_F(TermTest, PrintsPythonWithTheFewestBrackets) {
  for (const char* text : {"(m * 128 + lane // 4) % 8 ^ r",
                           "m - (lane - r)",
                           "m - lane - r",
                           "m // (lane + 1) // 2",
                           "-(lane + 1)",
                           "-lane // 2",
                           "-1 * 5",
                           "-5 * lane",
                           "m - -5",
                           "(lane & 7) << 4 | r & 1",
                           "(lane ^ r) & 7",
                           "min(lane, r + 1)",
                           "select(lane < r, m, -m)",
                           "perm[lane // 4] + table[lane, r % 2]",
                           "not (lane < 4 and r == 2) or m != 0",
                           "not not lane <= 3",
                           "True and False",
                           "lane * (r * m)",
                           "(lane + r) * m",
                           "9223372036854775807",
                           "-9223372036854775808",
                           "2 << (lane & 3) >> 1",
                           "lane < 4 and (r < 2 or m < 1)"})
    EXPECT_EQ(to_string(T(text)), text);
}

TEST_F(TermTest, ReadsMoreOfPythonThanItPrints) {
  EXPECT_EQ(T("0 <= lane < 8"), T("0 <= lane and lane < 8"));
  EXPECT_EQ(T("lane > r"), T("r < lane"));
  EXPECT_EQ(T("lane >= r"), T("r <= lane"));
  EXPECT_EQ(T("m if lane < 4 else r if lane < 8 else 0"),
            T("select(lane < 4, m, select(lane < 8, r, 0))"));
  EXPECT_EQ(T("min(lane, r, m)"), T("min(min(lane, r), m)"));
  EXPECT_EQ(T("lane>>1"), T("lane >> 1"));
}

TEST_F(TermTest, ParseInvertsPrintOnRandomTerms) {
  testing::RandomTerms random(11);
  for (int i = 0; i < 3000; ++i) {
    if (i % 16 == 0) random.renew();
    const Term t = i % 5 == 0 ? random.predicate(4) : random.number(4);
    const Result<Term> back = parse(random.pool(), to_string(t));
    ASSERT_TRUE(back) << to_string(t);
    ASSERT_EQ(*back, t) << to_string(t);
  }
}

TEST_F(TermTest, RefusesWithTheColumn) {
  EXPECT_EQ(code("lane / 4"), "TS0821");
  EXPECT_EQ(code("(lane"), "TS0821");
  EXPECT_EQ(code("lane 4"), "TS0821");
  EXPECT_EQ(code(""), "TS0821");
  EXPECT_EQ(code("9223372036854775808"), "TS0821");
  EXPECT_EQ(code("perm"), "TS0821");
  EXPECT_EQ(code("m if lane < 4"), "TS0821");
  EXPECT_EQ(code(std::string(1000, '(')), "TS0821");
  EXPECT_EQ(code("lane + lame"), "TS0823");
  EXPECT_EQ(code("lane % 0"), "TS0822");
  EXPECT_EQ(code("lane // m"), "TS0822");
  EXPECT_EQ(code("1 << r"), "TS0822");
  EXPECT_EQ(code("lane + (r < 2)"), "TS0822");
  EXPECT_EQ(code("not lane"), "TS0822");
  EXPECT_EQ(code("perm[lane, r]"), "TS0822");
  EXPECT_EQ(code("perm[lane < 2]"), "TS0822");
  EXPECT_EQ(parse(pool, "lane + lame").error().place.column, 8);
  EXPECT_EQ(parse(pool, "lane / 4").error().place.column, 6);
}

TEST_F(TermTest, RefusesDeclarationsThatContradict) {
  EXPECT_EQ(pool.coordinate("lane", 64).error().code, "TS0823");
  EXPECT_EQ(pool.parameter("r").error().code, "TS0823");
  EXPECT_EQ(pool.coordinate("x", 0).error().code, "TS0823");
  EXPECT_EQ(pool.coordinate("4x", 4).error().code, "TS0823");
  EXPECT_EQ(pool.coordinate("min", 4).error().code, "TS0823");
  EXPECT_EQ(pool.parameter("q", {.modulus = 0}).error().code, "TS0823");
  EXPECT_EQ(pool.memory("none", 0).error().code, "TS0823");
}

TEST_F(TermTest, ABugOfOursThrows) {
  EXPECT_THROW((void)floor_div(T("lane"), 0), std::logic_error);
  EXPECT_THROW((void)(T("lane") + T("lane < 2")), std::logic_error);
}

TEST_F(TermTest, EvaluatesAsPython) {
  EXPECT_EQ(value("(m * 128 + lane // 4) % 8 ^ r"), (3 * 128 + 1) % 8 ^ 10);
  EXPECT_EQ(value("-lane // 2"), -4);
  EXPECT_EQ(value("-lane % S"), 1);
  EXPECT_EQ(value("-lane & 15"), 9);
  EXPECT_EQ(value("-lane >> 1"), -4);
  EXPECT_EQ(value("3 << 4"), 48);
  EXPECT_EQ(value("perm[m] + 1"), 6);
  EXPECT_EQ(value("select(lane < 4, perm[0], r)"), 10);  // perm[0] has no value and is not asked
  EXPECT_EQ(value("lane < 8 and not r == 3"), 1);
}

TEST_F(TermTest, OverflowAndInadmissibleValuesAreErrors) {
  Assignment a;
  a.symbols = {{"m", int64_t{1} << 62}, {"lane", 32}};
  EXPECT_EQ(evaluate(T("m * 2"), a).error().code, "TS0824");
  EXPECT_EQ(evaluate(T("m + m - m"), a).error().code, "TS0824");
  EXPECT_EQ(evaluate(T("m << 1"), a).error().code, "TS0824");
  EXPECT_EQ(evaluate(T("m * 2 // 2 + lane"), a).error().code, "TS0824");
  EXPECT_EQ(evaluate(T("lane"), a).error().code, "TS0825");
  EXPECT_EQ(evaluate(T("r"), a).error().code, "TS0825");
  EXPECT_EQ(evaluate(T("perm[m]"), a).error().code, "TS0825");
}

TEST_F(TermTest, SymbolicBoundsAreChecked) {
  const Term k = pool.counter("k", pool.constant(0), T("m // 64")).value();
  Assignment a;
  a.symbols = {{"m", 128}, {"k", 1}};
  EXPECT_TRUE(admissible(symbols_of({k}), a));
  EXPECT_EQ(symbols_of({k}).size(), 2U);
  a.symbols["k"] = 2;
  EXPECT_EQ(admissible(symbols_of({k}), a).error().code, "TS0825");
  EXPECT_EQ(to_string(a, pool), "m = 128, k = 2");
}

}  // namespace
}  // namespace tessera::term
