#include "registry/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "base/files.h"
#include "registry/rank.h"
#include "registry/tables.h"

namespace tessera::registry {
namespace {

using ::testing::HasSubstr;

struct TestBody : rules::PatternBody {
  int64_t m = 0, n = 0, k = 0;
  TestBody(int64_t m, int64_t n, int64_t k) : m(m), n(n), k(k) {}
  [[nodiscard]] Json to_json() const override {
    return {{"m", m},
            {"n", n},
            {"k", k},
            {"scale", 0.5},
            {"a", {{"shape", {m, k}}, {"strides", {k, 1}}}}};
  }
};

rules::Pattern gemm(int64_t m, int64_t n, int64_t k) {
  rules::Pattern p;
  p.rule = "gemm";
  p.body = std::make_shared<TestBody>(m, n, k);
  return p;
}

Key key(int64_t m, int64_t n, int64_t k, const std::string& device = "H200") {
  return {fmt::format("gemm {}x{}x{}", m, n, k), "bf16", device, measuring_policy()};
}

/// A search by default that ended by itself.
Thoroughness complete(const std::string& effort = "default") {
  return thoroughness_of({.asked = {.effort = effort}, .seconds = 9, .because = "space exhausted"});
}

kernel::Winner winner(double ms) {
  kernel::Winner w;
  w.candidate = {.realizer = "cutlass_gemm", .config = {{"tile", {128, 256, 64}}}};
  w.candidate.source = toolchain::Source{.name = "k", .text = "int x;", .arch = "sm_90a"};
  w.candidate.launches = {{.knobs = {{"raster", "m"}}, .ints = {1, 2}}};
  w.evidence.ms = ms;
  w.binary = "abc";
  return w;
}

Entry accepted(int64_t m, int64_t n, int64_t k, double ms,
               const std::string& toolchain = "nvcc13") {
  Entry e{.key = key(m, n, k), .rule = "gemm", .arch = "sm_90a"};
  e.winners = {winner(ms)};
  e.eager_ms = 2 * ms;
  e.toolchain = toolchain;
  e.created = "2026-01-01T00:00:00Z";
  e.search = complete();
  e.shape = TestBody(m, n, k).to_json();
  return e;
}

Entry failed(int64_t m, int64_t n, int64_t k, const std::string& reason) {
  Entry e = accepted(m, n, k, 1);
  e.winners.clear();
  e.negative = {{{"label", "128x128"}, {"outcome", "crashed"}, {"reason", reason}}};
  return e;
}

class RegistryTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::unique_ptr<Registry> registry = open();
  std::unique_ptr<Registry> open(const std::string& name = "registry.sqlite") {
    auto r = Registry::open(folder.path() / name);
    EXPECT_TRUE(r.has_value()) << to_text(r.error());
    return std::move(*r);
  }
  Lookup look(int64_t m, int64_t n, int64_t k, const std::string& toolchain = "nvcc13") {
    auto found = registry->lookup(key(m, n, k), gemm(m, n, k), {.toolchain = toolchain});
    EXPECT_TRUE(found.has_value());
    return *found;
  }
};

TEST_F(RegistryTest, NewThenReuseAcrossOpening) {
  EXPECT_EQ(look(512, 512, 512).reuse, rules::Reuse::fresh);
  const Entry e = accepted(512, 512, 512, 0.5);
  ASSERT_TRUE(registry->store(e));
  registry.reset();
  registry = open();
  EXPECT_EQ(registry->mended(), "");
  const Lookup found = look(512, 512, 512);
  EXPECT_EQ(found.reuse, rules::Reuse::reuse);
  EXPECT_EQ(to_json(*found.entry), to_json(e));
  EXPECT_THAT(found.detail, HasSubstr("cutlass_gemm at 0.5 ms"));
}

TEST_F(RegistryTest, AnotherToolchainAdaptsAndBothStay) {
  ASSERT_TRUE(registry->store(accepted(512, 512, 512, 0.5, "nvcc12")));
  const Lookup found = look(512, 512, 512, "nvcc13");
  EXPECT_EQ(found.reuse, rules::Reuse::adapt);
  EXPECT_THAT(found.detail, HasSubstr("another toolchain"));
  ASSERT_TRUE(registry->store(accepted(512, 512, 512, 0.9, "nvcc13")));
  EXPECT_EQ(look(512, 512, 512, "nvcc12").entry->winners.front().evidence.ms, 0.5);
  EXPECT_EQ(look(512, 512, 512, "nvcc13").entry->winners.front().evidence.ms, 0.9);
}

TEST_F(RegistryTest, AnOrderSettledInAModuleStaysUntilAFasterKernelIsFound) {
  const auto stored = [](double first, double alone, bool refined) {
    Entry e = accepted(512, 512, 512, first);
    if (alone != first) e.winners.push_back(winner(alone));
    e.refined = refined;
    return e;
  };
  const auto first = [&] { return look(512, 512, 512).entry->winners.front().evidence.ms; };
  ASSERT_TRUE(registry->store(stored(0.5, 0.5, false)));
  ASSERT_TRUE(registry->store(stored(0.51, 0.5, true)));
  EXPECT_EQ(first(), 0.51);
  ASSERT_TRUE(registry->store(stored(0.5, 0.5, false)));
  EXPECT_EQ(first(), 0.51);
  ASSERT_TRUE(registry->store(stored(0.49, 0.49, false)));
  EXPECT_EQ(first(), 0.49);
}

TEST_F(RegistryTest, AdaptTakesTheNearestWithinAFactorOfTwo) {
  ASSERT_TRUE(registry->store(accepted(1024, 512, 512, 1)));
  ASSERT_TRUE(registry->store(accepted(600, 512, 512, 1)));
  ASSERT_TRUE(registry->store(accepted(512, 512, 1025, 1)));
  const Lookup found = look(512, 512, 512);
  EXPECT_EQ(found.reuse, rules::Reuse::adapt);
  EXPECT_EQ(found.entry->shape["m"], 600);
  EXPECT_EQ(look(128, 512, 512).reuse, rules::Reuse::fresh);
  EXPECT_NE(look(128, 512, 512).detail, "");
}

TEST_F(RegistryTest, AdaptStaysWithinRulePrecisionAndArchitecture) {
  ASSERT_TRUE(registry->store(accepted(512, 512, 512, 1)));
  rules::Pattern other = gemm(600, 512, 512);
  other.rule = "gated_mlp";
  EXPECT_EQ(registry->lookup(key(600, 512, 512), other, {.toolchain = "nvcc13"})->reuse,
            rules::Reuse::fresh);
  Key half = key(600, 512, 512);
  half.precision = "fp16";
  EXPECT_EQ(registry->lookup(half, gemm(600, 512, 512), {.toolchain = "nvcc13"})->reuse,
            rules::Reuse::fresh);
  const Key elsewhere = key(600, 512, 512, "another GPU");
  EXPECT_EQ(
      registry->lookup(elsewhere, gemm(600, 512, 512), {.toolchain = "nvcc13", .arch = "sm_80"})
          ->reuse,
      rules::Reuse::fresh);
  EXPECT_EQ(
      registry->lookup(elsewhere, gemm(600, 512, 512), {.toolchain = "nvcc13", .arch = "sm_90a"})
          ->reuse,
      rules::Reuse::adapt);
}

TEST_F(RegistryTest, BetterWinsAndFailuresAreKept) {
  ASSERT_TRUE(registry->store(failed(64, 64, 64, "illegal address")));
  EXPECT_EQ(look(64, 64, 64).reuse, rules::Reuse::reuse);
  EXPECT_EQ(look(64, 64, 64).entry->status(), "failed");
  EXPECT_THAT(look(64, 64, 64).detail, HasSubstr("nothing passed"));
  ASSERT_TRUE(registry->store(accepted(64, 64, 64, 0.5)));
  ASSERT_TRUE(registry->store(accepted(64, 64, 64, 0.7)));
  ASSERT_TRUE(registry->store(failed(64, 64, 64, "hang")));
  const Entry held = *look(64, 64, 64).entry;
  EXPECT_EQ(held.status(), "accepted");
  EXPECT_EQ(held.winners.front().evidence.ms, 0.5);
  ASSERT_EQ(held.negative.size(), 2u);
  EXPECT_EQ(held.negative[0]["reason"], "illegal address");
  EXPECT_EQ(held.negative[1]["reason"], "hang");
}

TEST_F(RegistryTest, AHashIsShownByAsManyDigitsAsTellItApart) {
  std::map<char, int> entries;  // by the hash's first digit
  for (int64_t m = 1; m <= 17; ++m) {
    ASSERT_TRUE(registry->store(accepted(m, 64, 64, 1)));
    ++entries[key(m, 64, 64).hash()[0]];
  }
  for (const auto& [digit, n] : entries) {
    const Result<Entry> shown = registry->show(std::string(1, digit));
    EXPECT_EQ(shown.has_value(), n == 1) << digit;
    if (!shown) {
      EXPECT_EQ(shown.error().code, "TS0635");
    }
  }
}

TEST_F(RegistryTest, AnEntryThatIsNotWholeIsNotRead) {
  const Json whole = to_json(accepted(512, 512, 512, 0.5));
  ASSERT_TRUE(entry_from_json(whole));
  const std::map<std::string, Json> wrong = {{"status", "unsure"}, {"rule", 3}};
  for (const auto& [field, value] : wrong) {
    Json broken = whole;
    broken[field] = value;
    EXPECT_EQ(entry_from_json(broken).error().code, "TS0631") << field;
  }
}

TEST_F(RegistryTest, ARecordOfALaterVersionIsNotApplied) {
  auto db = store::Database::open(folder.path() / "x.sqlite");
  ASSERT_TRUE(db && store::migrate(*db, migrations()));
  ASSERT_TRUE(registry::apply(*db, entry_record(accepted(512, 512, 512, 0.5))));
  EXPECT_EQ(registry::apply(*db, {{"what", "to come"}}).error().code, "TS0633");
}

TEST_F(RegistryTest, ListShowPrune) {
  ASSERT_TRUE(registry->store(accepted(512, 512, 512, 0.5)));
  ASSERT_TRUE(registry->store(failed(64, 64, 64, "x")));
  EXPECT_EQ(registry->list("")->size(), 2u);
  EXPECT_EQ(registry->list("status=failed gemm")->size(), 1u);
  EXPECT_EQ(registry->list("512x512")->size(), 1u);
  EXPECT_EQ(registry->list("nothing-like-this")->size(), 0u);
  EXPECT_EQ(registry->list("color=red").error().code, "TS0632");
  const std::string hash = key(64, 64, 64).hash();
  EXPECT_EQ(registry->show(hash.substr(0, 12))->status(), "failed");
  EXPECT_EQ(registry->show("zz").error().code, "TS0634");
  EXPECT_EQ(registry->prune("older:1000000d").value(), 0);
  EXPECT_EQ(registry->prune("rubbish").error().code, "TS0636");
  EXPECT_EQ(registry->prune("older:soon").error().code, "TS0636");
  EXPECT_EQ(registry->prune("failed").value(), 1);
  EXPECT_EQ(registry->prune("stale").value(), 0);
  EXPECT_EQ(registry->prune("stale:nvcc13").value(), 0);
  EXPECT_EQ(registry->prune("stale:nvcc14").value(), 1);
  registry.reset();
  registry = open();
  EXPECT_EQ(registry->mended(), "");
  EXPECT_EQ(registry->list("")->size(), 0u);  // pruned entries do not come back from the copy
}

TEST(Extents, TakeIntegersAndLeaveViewsOut) {
  const Json body = {{"rows", {4, 8}},
                     {"columns", 16},
                     {"eps", 1e-5},
                     {"causal", true},
                     {"operands", {{{"shape", {4, 8}}, {"strides", {8, 1}}}}},
                     {"groups", {{{"shape", {2, 3}}, {"dag", {{"nodes", 7}}}}}}};
  const Json expected = {{"rows[0]", 4},
                         {"rows[1]", 8},
                         {"columns", 16},
                         {"groups[0].shape[0]", 2},
                         {"groups[0].shape[1]", 3}};
  EXPECT_EQ(extents(body), expected);
  EXPECT_EQ(extents(extents(body)), expected);
}

TEST(Distance, NeedsTheSameExtentsWithinAFactorOfTwo) {
  EXPECT_EQ(distance({{"m", 4}}, {{"m", 4}}), 0.0);
  EXPECT_EQ(distance({{"m", 4}, {"n", 8}}, {{"m", 8}, {"n", 4}}), 2.0);
  EXPECT_FALSE(distance({{"m", 4}}, {{"m", 9}}));
  EXPECT_FALSE(distance({{"m", 4}}, {{"n", 4}}));
  EXPECT_FALSE(distance({{"m", 0}}, {{"m", 1}}));
  EXPECT_FALSE(distance(Json::object(), Json::object()));
}

}  // namespace
}  // namespace tessera::registry
