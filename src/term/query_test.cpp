// Verdicts against enumeration: nothing is proved that a point refutes, and what is refuted fails
// at the witness.
#include "term/query.h"

#include <gtest/gtest.h>

#include "term/testing/agreement.h"

namespace tessera::term {
namespace {

constexpr int64_t many = int64_t{1} << 40;

// The truth value of p as text at the first admissible trial point at which it is false; "" if
// there is none.
std::string counterexample(Term p) {
  int64_t compared = 0;
  return testing::disagreement(p, p.pool().truth(true), compared);
}

bool finite(Term t) {
  for (Term s : symbols_of({t}))
    if (s->op != Op::coordinate) return false;
  return !any_node(t, [](Term n) { return n->op == Op::read; });
}

TEST(Program, AgreesWithEvaluate) {
  testing::RandomTerms random(3);
  int64_t compared = 0;
  for (int i = 0; i < 400; ++i) {
    if (i % 8 == 0) random.renew();
    const Term t = i % 4 == 3 ? random.predicate(4) : random.number(4);
    Program program({t}, 5);
    const std::vector<Axis> axes = testing::trial_axes({t});
    const Walk ended = walk(program, axes, [&](int64_t begin, int count) {
      for (int k = 0; k < std::min(count, 24); ++k) {
        Assignment a;
        a.seed = 5;
        const std::vector<int64_t> values = point(axes, begin + k);
        for (std::size_t j = 0; j < axes.size(); ++j)
          a.symbols[axes[j].leaf->symbol->name] = values[j];
        const Result<int64_t> value = evaluate(t, a);
        EXPECT_TRUE(value) << to_string(t);
        EXPECT_EQ(value.value_or(-1), program.output(0)[k])
            << to_string(t) << " at " << to_string(a, random.pool());
        ++compared;
      }
      return true;
    });
    EXPECT_EQ(ended, Walk::done);
  }
  EXPECT_GT(compared, 5000);
}

TEST(Program, WalksInLexicographicOrderAndSeesOverflow) {
  Pool pool;
  const Term x = *pool.coordinate("x", 3), y = *pool.coordinate("y", 100), m = *pool.parameter("m");
  Program program({x * 100 + y});
  const std::vector<Axis> axes{{x, 0, 1, 3}, {y, 0, 1, 100}};
  int64_t next = 0;
  EXPECT_EQ(walk(program, axes,
                 [&](int64_t begin, int count) {
                   for (int i = 0; i < count; ++i) EXPECT_EQ(program.output(0)[i], next++);
                   return true;
                 }),
            Walk::done);
  EXPECT_EQ(next, 300);
  EXPECT_EQ(points(axes), 300);
  EXPECT_EQ(point(axes, 205), (std::vector<int64_t>{2, 5}));
  Program square({m * m});
  EXPECT_EQ(walk(square, {{m, int64_t{1} << 32, 1, 1}}, [](int64_t, int) { return true; }),
            Walk::overflowed);
}

TEST(Equal, NeverProvesWhatAPointRefutes) {
  testing::RandomTerms random(4);
  int proved = 0, refuted = 0, unknown = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 8 == 0) random.renew();
    Pool& pool = random.pool();
    const Term t = random.number(3), other = random.number(2);
    // The same in another shape, and something near it.
    const Term u =
        i % 2 == 0
            ? simplify(t + other) - other
            : t + pool.must(Op::select, {random.predicate(2), pool.constant(0), pool.constant(1)});
    const Verdict v = equal(t, u);
    if (v.proved()) {
      ++proved;
      ASSERT_EQ(counterexample(equals(t, u)), "") << v.reason;
    } else if (v.refuted()) {
      ++refuted;
      const Result<int64_t> a = evaluate(t, v.witness), b = evaluate(u, v.witness);
      ASSERT_TRUE(a && b && *a != *b)
          << to_string(t) << " and " << to_string(u) << " " << to_string(v, pool);
      ASSERT_TRUE(admissible(symbols_of({t, u}), v.witness));
      ASSERT_EQ(i % 2, 1) << to_string(t);
    } else {
      ++unknown;
      ASSERT_FALSE(finite(t - u)) << to_string(t) << " and " << to_string(u) << ": " << v.reason;
    }
  }
  EXPECT_GT(proved, 1000);
  EXPECT_GT(refuted, 400);
  EXPECT_LT(unknown, 300);
}

TEST(Always, NeverProvesWhatAPointRefutes) {
  testing::RandomTerms random(5);
  int proved = 0, refuted = 0, unknown = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 8 == 0) random.renew();
    const Term p = random.predicate(3);
    const Verdict v = always(p);
    if (v.proved()) {
      ++proved;
      ASSERT_EQ(counterexample(p), "") << v.reason;
    } else if (v.refuted()) {
      ++refuted;
      const Result<int64_t> value = evaluate(p, v.witness);
      ASSERT_TRUE(value && *value == 0) << to_string(p) << " " << to_string(v, random.pool());
    } else {
      ++unknown;
      ASSERT_FALSE(finite(p)) << to_string(p) << ": " << v.reason;
    }
  }
  EXPECT_GT(proved, 150);
  EXPECT_GT(refuted, 1500);
  EXPECT_LT(unknown, 300);
}

TEST(Equal, WitnessesAreTheFirstPoint) {
  testing::RandomTerms random(6);
  int compared = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i % 8 == 0) random.renew();
    const Term t = random.number(3), u = random.number(3);
    if (!finite(t - u)) continue;
    const Verdict v = equal(t, u);
    const Term claim = equals(t, u);
    Program program({claim});
    const std::vector<Axis> axes = testing::trial_axes({claim});
    std::optional<std::vector<int64_t>> first;
    walk(program, axes, [&](int64_t begin, int count) {
      for (int k = 0; k < count && !first; ++k)
        if (program.output(0)[k] == 0) first = point(axes, begin + k);
      return !first;
    });
    ASSERT_EQ(v.refuted(), first.has_value()) << to_string(claim);
    if (!first) continue;
    for (std::size_t a = 0; a < axes.size(); ++a)
      ASSERT_EQ(v.witness.symbols.at(axes[a].leaf->symbol->name), (*first)[a]) << to_string(claim);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

TEST(Injective, AgreesWithAllPairs) {
  testing::RandomTerms random(7);
  int proved = 0, refuted = 0;
  for (int i = 0; i < 1500; ++i) {
    if (i % 8 == 0) random.renew();
    Pool& pool = random.pool();
    const Term x = *parse(pool, "x"), y = *parse(pool, "y");
    const Term t = i % 3 == 0
                       ? random.number(3)
                       : x * (1 + i % 7) + y * (1 + i / 7 % 9) + floor_mod(random.number(1), 3);
    if (!finite(t)) continue;
    Program program({t});
    const std::vector<Axis> axes{testing::trial_axis(x), testing::trial_axis(y)};
    std::vector<int64_t> values;
    walk(program, axes, [&](int64_t, int count) {
      values.insert(values.end(), program.output(0).begin(), program.output(0).begin() + count);
      return true;
    });
    std::optional<std::pair<std::size_t, std::size_t>> first;
    for (std::size_t a = 0; a < values.size() && !first; ++a)
      for (std::size_t b = a + 1; b < values.size() && !first; ++b)
        if (values[a] == values[b]) first = {a, b};
    const Verdict v = is_injective(t, {x, y});
    ASSERT_EQ(v.proved(), !first) << to_string(t) << " " << to_string(v, pool);
    ASSERT_EQ(v.refuted(), first.has_value());
    ++(first ? refuted : proved);
    if (!first) continue;
    ASSERT_EQ(v.witness.symbols.at("x"), point(axes, first->first)[0]);
    ASSERT_EQ(v.witness.symbols.at("y"), point(axes, first->first)[1]);
    ASSERT_EQ(v.other.symbols.at("x"), point(axes, first->second)[0]);
    ASSERT_EQ(v.other.symbols.at("y"), point(axes, first->second)[1]);
  }
  EXPECT_GT(proved, 100);
  EXPECT_GT(refuted, 300);
}

TEST(Injective, AsksOnlyAboutWhatCanBeWalked) {
  Pool pool;
  const Term x = *pool.coordinate("x", 4), m = *pool.parameter("M");
  EXPECT_EQ(is_injective(x + m, {m}).outcome, Outcome::unknown);
  EXPECT_EQ(is_injective(x + m, {x + m}).outcome, Outcome::unknown);
  EXPECT_TRUE(is_injective(x + m, {x}).proved());
  // A coordinate that the term does not have.
  const Verdict v = is_injective(m + 1, {x});
  ASSERT_TRUE(v.refuted()) << to_string(v, pool);
  EXPECT_EQ(v.other.symbols.at("x"), 1);
}

TEST(Query, AnEmptyLoopProvesAnything) {
  Pool pool;
  const Term k = *pool.counter("k", pool.constant(4), pool.constant(4));
  EXPECT_TRUE(equal(floor_mod(k * k, 7), floor_mod(k, 7)).proved());
  EXPECT_FALSE(always(less(k, k)).refuted());
  EXPECT_FALSE(equal(k, k + 1).refuted());
}

TEST(Query, BudgetsEndInUnknownAndNotInAVerdict) {
  Pool pool;
  const Term x = *pool.coordinate("x", many), y = *pool.coordinate("y", many);
  const Term t = floor_mod(x * y, 7), u = floor_mod(y * (x + 7) + floor_div(x * y, many) * 7, 7);
  const Verdict v = equal(floor_mod(t * t, 5), floor_mod(u * u * u, 5), {.operations = 1000});
  EXPECT_NE(v.outcome, Outcome::proved);
  const Verdict hard = equal(floor_mod(x * x * x, 7),
                             floor_mod(x * x * x * x * x * x * x * x * x, 7), {.operations = 1000});
  EXPECT_EQ(hard.outcome, Outcome::unknown);
  EXPECT_NE(hard.reason, "");
}

TEST(Query, IndependentCoordinatesAreWalkedSeparately) {
  Pool pool;
  const auto T = [&](const char* text) { return parse(pool, text).value(); };
  for (const char* name : {"a", "b", "c", "d"}) (void)*pool.coordinate(name, 256);
  // 2^32 points together, 4 * 256 apart.
  const Verdict v = equal(T("(a ^ 85) + (b ^ 85) + (c ^ 85) + (d ^ 85)"),
                          T("a + 85 - 2 * (a & 85) + b + 85 - 2 * (b & 85) + c + 85 - 2 * (c & 85) "
                            "+ d + 85 - 2 * (d & 85)"));
  EXPECT_TRUE(v.proved()) << to_string(v, pool);
  const Verdict w = equal(T("(a ^ 3) % 5 + (b ^ 3) % 5 + (c ^ 3) % 5 + (d ^ 3) % 5"),
                          T("(a ^ 3) % 5 + (b ^ 3) % 5 + (c ^ 3) % 5 + (d ^ 3) % 5 + d // 255"));
  ASSERT_TRUE(w.refuted());
  EXPECT_EQ(to_string(w.witness, pool), "a = 0, b = 0, c = 0, d = 255");
}

TEST(Query, IndependentCoordinatesMayHaveMorePointsThanCanBeCounted) {
  Pool pool;
  const auto T = [&](const std::string& text) { return parse(pool, text).value(); };
  std::string sum = "0";
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    (void)*pool.coordinate(name, 65536);
    sum += std::string(" + (") + name + " ^ 3) % 5";
  }
  const Verdict v = equal(T(sum), T(sum + " + select((c ^ 3) % 5 + c == 65532, 1, 0)"));
  ASSERT_TRUE(v.refuted()) << to_string(v, pool);
  EXPECT_EQ(v.witness.symbols.at("a") + v.witness.symbols.at("b") + v.witness.symbols.at("d"), 0);
  EXPECT_GT(v.witness.symbols.at("c"), 65000);
}

TEST(Query, ReadsWithEqualIndicesAreEqual) {
  Pool pool;
  (void)*pool.coordinate("x", 12);
  (void)*pool.memory("perm", 1, {pool.constant(0), pool.constant(12)});
  const auto T = [&](const char* text) { return parse(pool, text).value(); };
  EXPECT_TRUE(
      equal(T("perm[x * x % 12 % 5]"), T("perm[(x * x % 12 + 5 * (x // 7)) % 5]")).proved());
  const Verdict v = equal(T("perm[x]"), T("perm[x % 6]"));
  ASSERT_TRUE(v.refuted());
  EXPECT_EQ(v.witness.reads.size(), 2U);
  EXPECT_TRUE(always(T("0 <= perm[perm[x]] < 12")).proved());
}

TEST(Query, QuotientsAndRestsAreNoSymbolsOfTheUser) {
  Pool pool;
  (void)*pool.parameter("K", {.lower = pool.constant(0)});
  const auto T = [&](const char* text) { return parse(pool, text).value(); };
  EXPECT_EQ(equal(T("(K + 63) // 64"), T("K // 64 + select(K % 64 > 0, 1, 0)")).reason,
            "enumeration of 64 points of quotients and rests");
  EXPECT_EQ(pool.coordinate("K.rest.64", 64).error().code, "TS0823");
  Pool other;
  (void)*other.parameter("K", {.lower = other.constant(0)});
  (void)*other.coordinate("K.rest.64", 64);
  // Without the name the claim is left open, and not mistaken.
  const Term left = parse(other, "(K + 63) // 64").value();
  EXPECT_EQ(equal(left, parse(other, "K // 64 + select(K % 64 > 0, 1, 0)").value()).outcome,
            Outcome::unknown);
}

TEST(Query, OverflowIsNeverAVerdict) {
  Pool pool;
  (void)*pool.parameter("M");
  (void)*pool.coordinate("x", 4);
  const auto T = [&](const char* text) { return parse(pool, text).value(); };
  // As integers they are equal, though neither side can be computed.
  EXPECT_TRUE(
      equal(T("9223372036854775807 * (x + 1) - 9223372036854775807 * x"), T("9223372036854775807"))
          .proved());
  EXPECT_TRUE(in_range(T("x * 4 - 8"), T("-8"), T("5")).proved());
  EXPECT_TRUE(in_range(T("x * 4 - 8"), T("-8"), T("4")).refuted());
}

}  // namespace
}  // namespace tessera::term
