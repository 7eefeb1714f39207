// Seeded bugs: one edit each of the product's ops. The interpreter finds every one on every
// schedule that is tried, under the code that fits; the product itself is clean on the same
// launches.
#include <gtest/gtest.h>
#include <set>

#include "base/thorough.h"

#include "simulate/testing/product.h"

namespace tessera::simulate {
namespace {

using core::Body;
using core::Kernel;
using testing::drop;
using testing::edit;
using testing::issue_at;

core::Integers number(Kernel& k, int64_t n) {
  return {{k.pool->constant(n)}};
}

struct Mutation {
  const char* name;
  std::function<bool(Kernel&)> apply;
  std::set<std::string_view> codes;  // of the first finding
  const char* says;                  // in the first finding, by this word
};

bool set_argument(Kernel& k, std::string_view form, std::string_view storage, int nth,
                  std::size_t argument, const std::function<core::Argument(core::Argument)>& to) {
  return edit(k, form, storage, nth, [&](Body& body, std::size_t i) {
    core::Argument& a = issue_at(body, i).arguments.at(argument);
    a = to(a);
  });
}

/// The nth elected body, its lane's alone, becomes every lane's.
bool unelect(Kernel& k, std::string_view form, int nth) {
  int seen = 0;
  return !testing::walk(k.body, [&](Body& body, std::size_t i) {
    const auto* e = std::get_if<core::Elected>(&body[i].node);
    if (e == nullptr) return true;
    const auto* issue = std::get_if<core::Issue>(&e->body.front().node);
    if (issue == nullptr || issue->form->name != form || seen++ != nth) return true;
    const Body inner = e->body;
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), inner.begin(), inner.end());
    return false;
  });
}

bool one_turn_less(Kernel& k) {
  int loops = 0;
  return !testing::walk(k.body, [&](Body& body, std::size_t i) {
    auto* f = std::get_if<core::For>(&body[i].node);
    if (f == nullptr || f->counter->symbol->name != "turn") return true;
    f->upper = f->upper - 1;
    return ++loops < 2;
  });
}

constexpr std::string_view R = "TS0840", P = "TS0841", U = "TS0842", S = "TS0844", B = "TS0845",
                           F = "TS0846", O = "TS0847", E = "TS0848";

std::function<bool(Kernel&)> dropped(std::string_view form, std::string_view storage = "",
                                     int nth = 0) {
  return [=](Kernel& k) { return edit(k, form, storage, nth, drop); };
}

/// Another number in place of an argument.
std::function<bool(Kernel&)> numbered(std::string_view form, std::string_view storage,
                                      std::size_t argument, int64_t n) {
  return [=](Kernel& k) {
    return set_argument(k, form, storage, 0, argument,
                        [&](const core::Argument&) { return number(k, n); });
  };
}

/// Waits and releases of stages.
std::vector<Mutation> waits() {
  return {
      {"drop the wait for a full stage", dropped("mbarrier.wait", "full"), {U, R}, "wgmma"},
      {"drop the wait for an empty stage", dropped("mbarrier.wait", "empty"), {R, B}, ""},
      {"the producer's first parity",
       [](Kernel& k) {
         return set_argument(k, "mbarrier.wait", "empty", 0, 1, [&](core::Argument a) {
           core::Integers parity = std::get<core::Integers>(a);
           parity.values[0] = k.pool->constant(1) - parity.values[0];
           return core::Argument(parity);
         });
       },
       {S},
       "empty[0]"},
      {"release before wgmma.wait",
       [](Kernel& k) {
         return edit(k, "wgmma.wait", "", 0,
                     [](Body& body, std::size_t i) { std::swap(body.at(i), body.at(i + 1)); });
       },
       {R},
       "wgmma"},
      {"a stage index that is one behind",
       [](Kernel& k) {
         return set_argument(k, "wgmma.f32.bf16.bf16.ss", "", 0, 1, [&](core::Argument a) {
           core::SharedAt at = std::get<core::SharedAt>(a);
           at.at[0] = floor_mod(at.at[0] + 1, 2);
           return core::Argument(at);
         });
       },
       {U, R},
       "`a["},
  };
}

/// Bytes and arrivals of a phase.
std::vector<Mutation> counts() {
  return {
      {"an arrival that expects no bytes",
       [](Kernel& k) {
         return edit(k, "mbarrier.arrive_expect_tx", "", 0, [](Body& body, std::size_t i) {
           core::Issue& issue = issue_at(body, i);
           issue.form = arch::find_form("mbarrier.arrive");
           issue.arguments.pop_back();
         });
       },
       {B, U, R},
       ""},
      {"too few bytes expected", numbered("mbarrier.arrive_expect_tx", "", 1, 2048), {B, U, R}, ""},
      {"too many bytes expected",
       numbered("mbarrier.arrive_expect_tx", "", 1, 4096 + 16),
       {S},
       "16 bytes"},
      {"an empty barrier that one warp completes",
       numbered("mbarrier.init", "empty", 1, 1),
       {R, B},
       ""},
      {"an empty barrier that lacks one arrival",
       numbered("mbarrier.init", "empty", 1, 5),
       {S},
       "lacks 1 of 5 arrivals"},
      {"every lane releases a stage",
       [](Kernel& k) { return unelect(k, "mbarrier.arrive", 0); },
       {B},
       "`empty["},
  };
}

/// The epilogue, registers, and both ends of the kernel.
std::vector<Mutation> others() {
  return {
      {"the wait for the grids before comes last",
       [](Kernel& k) {
         return edit(k, "grid.wait", "", 0, [](Body& body, std::size_t i) {
           std::rotate(body.begin() + static_cast<std::ptrdiff_t>(i),
                       body.begin() + static_cast<std::ptrdiff_t>(i) + 1, body.end());
         });
       },
       {R},
       "grid.wait"},
      {"no proxy fence before the TMA store", dropped("fence.async.shared::cta"), {P}, "tma.store"},
      {"no meeting before the TMA store", dropped("barrier.sync", "", 2), {R, U}, "tma.store"},
      {"no wait before the staging buffer is written again",
       dropped("bulk.wait_read"),
       {R},
       "tma.store"},
      {"no meeting after that wait", dropped("barrier.sync", "", 1), {R}, "stmatrix"},
      {"accumulators are read with a wgmma in flight", dropped("wgmma.wait", "", 1), {F, R}, ""},
      {"products are not committed", dropped("wgmma.commit"), {F, R}, ""},
      {"no fence of the accumulators", dropped("wgmma.fence"), {F}, "wgmma.fence"},
      {"a sum that begins with what is there",
       numbered("wgmma.f32.bf16.bf16.ss", "", 3, 1),
       {U},
       "`acc`"},
      {"no fence of the mbarriers", dropped("fence.mbarrier_init"), {P}, "mbarrier"},
      {"no meeting after the mbarriers", dropped("barrier.sync", "", 0), {R, B}, "mbarrier"},
      {"exit before the stores have read", dropped("bulk.wait_read", "", 2), {E}, "tma.store"},
      {"the last tile is left out", one_turn_less, {O}, "never written"},
  };
}

TEST(SimulateMutations, EachIsFoundOnEverySchedule) {
  const core::testing::GemmShape shape{.bm = 64, .bn = 64, .bk = 16, .stages = 2, .early = true};
  // Three tiles on one block: the first staging buffer is taken again, with more trips than stages.
  const Launch launch = testing::launch({.m = 64, .n = 192, .k = 48, .multiprocessors = 1});
  const uint64_t schedules = thorough() ? 100 : 2;
  std::vector<Mutation> all = waits();
  for (const auto& more : {counts(), others()}) all.insert(all.end(), more.begin(), more.end());
  EXPECT_EQ(all.size(), 24u);
  for (const Mutation& m : all) {
    SCOPED_TRACE(m.name);
    Result<Kernel> kernel = core::testing::gemm(shape);
    ASSERT_TRUE(kernel);
    ASSERT_TRUE(m.apply(*kernel));
    const Result<Simulator> simulator = Simulator::make(*kernel, launch);
    ASSERT_TRUE(simulator) << to_text(simulator.error());
    for (uint64_t seed = 0; seed < schedules; ++seed) {
      const Outcome o = simulator->run(Schedule::seeded(seed));
      ASSERT_FALSE(o.findings.empty()) << "seed " << seed;
      const Diagnostic& first = o.findings.front();
      EXPECT_TRUE(m.codes.contains(first.code)) << "seed " << seed << "\n" << to_text(first);
      EXPECT_NE(to_text(first).find(m.says), std::string::npos) << to_text(first);
    }
  }
}

TEST(SimulateMutations, TwoConsumersNeedBothReleases) {
  const core::testing::GemmShape shape{.bm = 128, .bn = 64, .bk = 16, .stages = 2};
  const testing::Sizes sizes{.m = 128, .n = 64, .k = 64};
  Result<Kernel> kernel = core::testing::gemm(shape);
  ASSERT_TRUE(kernel);
  const auto first = [&](uint64_t seed) {
    const Result<Outcome> o = simulate(*kernel, testing::launch(sizes), Schedule::seeded(seed));
    return o && !o->findings.empty() ? o->findings.front().code : "";
  };
  for (uint64_t seed = 0; seed < 4; ++seed) EXPECT_EQ(first(seed), "");
  ASSERT_TRUE(set_argument(*kernel, "mbarrier.init", "empty", 0, 1,
                           [&](const core::Argument&) { return number(*kernel, 4); }));
  for (uint64_t seed = 0; seed < 4; ++seed)
    EXPECT_TRUE(first(seed) == race.id || first(seed) == bad_barrier.id) << first(seed);
}

/// A finding's schedule leads to it again.
TEST(SimulateMutations, AFindingIsReplayed) {
  Result<Kernel> kernel = core::testing::gemm({.bm = 64, .bn = 64, .bk = 16, .stages = 2});
  ASSERT_TRUE(kernel);
  ASSERT_TRUE(edit(*kernel, "mbarrier.wait", "empty", 0, drop));
  const Result<Simulator> simulator = Simulator::make(*kernel, testing::launch({.k = 64}));
  ASSERT_TRUE(simulator);
  const Outcome o = simulator->run(Schedule::seeded(2));
  ASSERT_FALSE(o.findings.empty());
  Schedule replay{1234, o.findings.front().data["choices"].get<std::vector<uint32_t>>()};
  const Outcome again = simulator->run(replay);
  ASSERT_FALSE(again.findings.empty());
  EXPECT_EQ(again.findings.front().message, o.findings.front().message);
  EXPECT_EQ(again.findings.front().notes, o.findings.front().notes);
}

}  // namespace
}  // namespace tessera::simulate
