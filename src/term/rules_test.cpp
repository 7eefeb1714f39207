// Every rule: a term that it rewrites, the value kept at all points, and a term that misses its
// condition, which it leaves.
#include "term/rules.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "term/testing/agreement.h"

namespace tessera::term {
namespace {

struct Case {
  const char* rule;
  const char* rewrites;
  const char* leaves;
};

constexpr Case cases[] = {
    {"sum_collect", "2 * (x + y) - x", "x + 2 * y"},
    {"sum_collect", "M * (x + 1)", "x * M"},
    {"sum_collect", "M * (y + x - 1)", "3037000500 * M * (3037000500 * M)"},
    {"sum_merge_whole", "M % 6 + 6 * (M // 6)", "M % 6 + 5 * (M // 6)"},
    {"sum_merge_whole", "M - M % 4", "y // 2 + 2 * (y % 2)"},
    {"sum_merge_digits", "M % 4 + 4 * (M // 4 % 3)", "M % 4 + 3 * (M // 4 % 3)"},
    {"sum_merge_digits", "2 * (M // 2 % 3) + M % 2", "M % 4 + 4 * (M // 2 % 3)"},
    {"sum_make_remainder", "3 * M - 12 * (M // 4)", "3 * M - 8 * (M // 4)"},
    {"sum_make_remainder", "x + M - 2 * ((x + M) // 2)", "x - 2 * (M // 2)"},
    {"sum_exact_quotient", "6 * (N4 // 2)", "M // 2 * 2"},
    {"sum_exact_quotient", "8 * ((N4 + 1) // 4)", "2 * (N4 // 4)"},
    {"divide_by_one", "M // 1", "M // 2"},
    {"divide_split", "(6 * M + 9 + x) // 3", "(2 * M + x) // 3"},
    {"divide_split", "(S * M + x) // S", "(S + M) // (2 * S)"},
    {"divide_in_range", "x // 16", "x // 12"},
    {"divide_in_range", "(x - 13) // 16", "M // 16"},
    {"divide_in_range", "k // S", "x // S"},
    {"divide_common", "(4 * M + y) // 12", "(4 * M + x) // 12"},
    {"divide_common", "(S * M + k) // (3 * S)", "(S * M + x) // (3 * S)"},
    {"divide_nested", "M // 3 // 5", "(M // 3 + N // 2) // 5"},
    {"divide_nested", "(M // 3 + x) // 5", "(2 * (M // 3) + x) // 5"},
    {"divide_nested", "M // S // 3", "(M // S + x) // 3"},
    {"divide_nested", "M // 4 // S", "M // 4611686018427387904 // 4"},
    {"divide_of_remainder", "M % 12 // 4", "M % 6 // 4"},
    {"divide_of_remainder", "M % (6 * S) // 2", "M % (6 * S) // 4"},
    {"divide_of_bits", "(x ^ z) // 4", "(x ^ z) // 6"},
    {"divide_of_bits", "(M & x) // 4", "(M + x) // 4"},
    {"remainder_drop", "(6 * M + 9 + x) % 3", "(2 * M + x) % 3"},
    {"remainder_drop", "(S * M + x) % S", "(2 * S + x) % (3 * S)"},
    {"remainder_drop", "-M % 4", "M % 4"},
    {"remainder_in_range", "x % 16", "x % 12"},
    {"remainder_in_range", "(x - 13) % 16", "M % 16"},
    {"remainder_in_range", "k % S", "x % S"},
    {"remainder_known", "(N4 + 3) % 2", "(N4 + 3) % 8"},
    {"remainder_common", "(4 * M + y) % 12", "(4 * M + x) % 12"},
    {"remainder_common", "(S * M + k) % (3 * S)", "(S * M + x) % (3 * S)"},
    {"remainder_nested", "(M % 12 + x) % 4", "(M % 6 + x) % 4"},
    {"remainder_nested", "(2 * (M % 6) + x) % 4", "(M % 2 + x) % 4"},
    {"remainder_nested", "M % (6 * S) % 3", "M % (6 * S) % 4"},
    {"remainder_nested", "(M % S + x) % S", "(M % 3 + x) % S"},
    {"remainder_of_bits", "(x ^ z) % 4", "(x ^ z) % 6"},
    {"bits_gather", "x ^ z ^ x", "x ^ z"},
    {"bits_gather", "x & z & x", "x ^ z"},
    {"bits_gather", "x & 0", "x & y"},
    {"bits_gather", "x | y | x", "x | y"},
    {"bits_shift", "M << 3", "3 << y"},
    {"bits_shift", "M >> 2", "M >> y"},
    {"bits_mask", "M & 14", "M & 1365"},
    {"bits_mask", "M & -8", "M & x"},
    {"bits_disjoint", "y ^ 4 * x", "y ^ 2 * x"},
    {"bits_disjoint", "y & 4 * x", "y & 4 * M"},
    {"bits_disjoint", "16 * y | x", "8 * y | x"},
    {"bits_or_constant", "M | 3", "M | x"},
    {"bits_xor_negative", "M ^ -4", "M ^ 4"},
    {"bits_xor_cut", "x ^ y", "x ^ z"},
    {"bits_xor_cut", "M ^ y", "M ^ N"},
    {"bits_xor_cut", "2 * M ^ 2 * N", "3 * M ^ N"},
    {"bits_xor_cut", "8 * M + v ^ N", "8 * M + x ^ N"},
    {"choice_decided", "min(x, 12)", "min(x, 11)"},
    {"choice_decided", "max(k, S)", "max(k, x)"},
    {"choice_ordered", "max(y, x)", "max(x, y)"},
    {"select_known", "select(x < 16, M, y)", "select(x < 12, M, y)"},
    {"select_same", "select(x < 3, M, M)", "select(x < 3, M, N)"},
    {"select_turned", "select(x != 3, M, y)", "select(x == 3, M, y)"},
    {"select_turned", "select(x <= M, 1, y)", "select(M <= x, 1, y)"},
    {"compare_decided", "x < 13", "x < 12"},
    {"compare_decided", "k < S", "k < x"},
    {"compare_decided", "N4 == 6", "N4 == 8"},
    {"compare_decided", "x != -1", "x != 12"},
    {"compare_order", "x < M", "0 <= M - x"},
    {"compare_order", "2 * x <= 5 - 4 * M", "M == 4"},
    {"compare_equation", "2 * x == 4 * M + 6", "M - x < 0"},
    {"compare_equation", "4 * M + 4 * x != 2", "0 <= M"},
    {"logic_negation", "not x < M", "x < M"},
    {"logic_negation", "not (x < M or y == N)", "0 <= M and y - N == 0"},
    {"logic_gather", "x < M and y < M and x < M", "x < M and y < M"},
    {"logic_gather", "x < M or M <= x", "x < M or M < x"},
};

class RulesTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto c = [&](int64_t v) { return pool.constant(v); };
    (void)pool.coordinate("x", 13).value();
    (void)pool.coordinate("y", 4).value();
    (void)pool.coordinate("z", 16).value();
    (void)pool.coordinate("v", 8).value();
    (void)pool.parameter("M").value();
    (void)pool.parameter("N").value();
    (void)pool.parameter("N4", {.lower = c(0), .modulus = 4}).value();
    const Term s = pool.parameter("S", {c(7), c(9)}).value();
    (void)pool.counter("k", c(0), s).value();
  }
  // The text's root over arguments in normal form, which is what rules see.
  Term root(const char* text) {
    const Term t = parse(pool, text).value();
    std::vector<Term> args;
    for (Term a : t->args) args.push_back(simplify(a));
    return pool.make(t->op, args).value();
  }
  Pool pool;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.rule;
}

TEST_P(RulesTest, RewritesWithTheSameValue) {
  const Rule* rule = find_rule(GetParam().rule);
  ASSERT_NE(rule, nullptr);
  const Term before = root(GetParam().rewrites);
  const Term after = rule->apply(pool, before);
  EXPECT_NE(after, before) << rule->name << " leaves " << to_string(before);
  int64_t compared = 0;
  EXPECT_EQ(testing::disagreement(before, after, compared), "");
  EXPECT_GE(compared, 4);
}

TEST_P(RulesTest, LeavesWhatMissesItsCondition) {
  const Rule* rule = find_rule(GetParam().rule);
  ASSERT_NE(rule, nullptr);
  const Term t = root(GetParam().leaves);
  EXPECT_EQ(rule->apply(pool, t), t) << rule->name << " makes " << to_string(rule->apply(pool, t));
}

INSTANTIATE_TEST_SUITE_P(Table, RulesTest, ::testing::ValuesIn(cases), [](const auto& param) {
  return std::string(param.param.rule) + "_" + std::to_string(param.index);
});

TEST(Rules, EveryRuleHasACase) {
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules) {
      const bool tried = std::any_of(std::begin(cases), std::end(cases),
                                     [&](const Case& c) { return rule.name == c.rule; });
      EXPECT_TRUE(tried) << rule.name;
    }
}

TEST(Rules, DisagreementFindsARuleWithoutItsCondition) {
  Pool pool;
  (void)pool.coordinate("x", 16).value();
  int64_t compared = 0;
  // Nested remainders without divisibility: the bug that this table's discipline is there to
  // prevent.
  EXPECT_NE(testing::disagreement(*parse(pool, "x % 6 % 4"), *parse(pool, "x % 4"), compared), "");
  EXPECT_NE(
      testing::disagreement(*parse(pool, "(4 * x + 5) // 8"), *parse(pool, "x // 2"), compared),
      "");
}

TEST(Rules, TheDocumentListsThem) {
  const std::string page = read_file(source_folder() + "/docs/terms.md");
  const std::string begin = "<!-- rules:begin -->\n", end = "<!-- rules:end -->";
  const std::size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), rules_as_markdown())
      << "put this between the markers of docs/terms.md";
}

TEST(Simplify, AgreesWithEnumerationOnRandomTerms) {
  testing::RandomTerms random(1);
  int64_t points = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (i % 16 == 0) random.renew();
    const Term t = i % 4 == 3 ? random.predicate(4) : random.number(2 + i % 4);
    const testing::Agreement found = testing::agreement(t);
    ASSERT_EQ(found.fault, "") << "term " << i;
    points += found.points;
  }
  EXPECT_GT(points, 100'000);
}

TEST(Simplify, EndsWhereBoundsKnowMoreThanFacts) {
  Pool pool;
  (void)pool.coordinate("x", 2).value();
  (void)pool.coordinate("y", 3).value();
  (void)pool.parameter("M").value();
  for (const char* text : {"(-4 * (7 // 2) ^ select(M != x, y % 1, y & -3)) // 6",
                           "(-3 * y ^ x % 12) >> 1 ^ x % 8 * -3 % 4",
                           "select(M != x, 0, max(y, y * y) - 2 * (y // 2)) ^ 11"}) {
    EXPECT_EQ(testing::agreement(parse(pool, text).value()).fault, "");
    EXPECT_EQ(pool.gave_up, 0);
  }
}

TEST(Simplify, TracesEveryStepSoThatItCanBeChecked) {
  testing::RandomTerms random(2);
  int64_t steps = 0;
  for (int i = 0; i < 500; ++i) {
    if (i % 16 == 0) random.renew();
    const Term t = random.number(4);
    Trace trace;
    const Term normal = simplify(t, &trace);
    EXPECT_EQ(trace.empty() && normal != t, false) << to_string(t);
    for (const TraceStep& s : trace) {
      ASSERT_EQ(s.rule->apply(random.pool(), s.before), s.after)
          << s.rule->name << " on " << to_string(s.before);
      for (Term a : s.before->args) ASSERT_EQ(simplify(a), a) << to_string(s.before);
    }
    steps += static_cast<int64_t>(trace.size());
  }
  EXPECT_GT(steps, 1000);
}

TEST(Simplify, BringsKernelTermsIntoOneForm) {
  Pool pool;
  (void)pool.coordinate("lane", 32).value();
  (void)pool.coordinate("reg", 4).value();
  (void)pool.parameter("m").value();
  const auto normal = [&](const char* text) {
    return to_string(simplify(parse(pool, text).value()));
  };
  EXPECT_EQ(normal("(lane * 4 + reg) // 4"), "lane");
  EXPECT_EQ(normal("(128 * m + lane * 4 + reg) % 128"), "4 * lane + reg");
  EXPECT_EQ(normal("lane // 4 * 4 + lane % 4"), "lane");
  EXPECT_EQ(normal("(lane * 4 + reg) ^ reg * 32"), "reg + 4 * (lane % 8) + 32 * (reg ^ lane // 8)");
  EXPECT_EQ(normal("lane < 32 and m <= m"), "True");
}

}  // namespace
}  // namespace tessera::term
