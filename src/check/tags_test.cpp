// Assertions about tags: what holds is proved for all sizes, what does not is refuted with a
// witness, and what is not followed is neither.
#include <gmock/gmock.h>

#include "arch/arch.h"

#include "check/check.h"
#include "check/kind.h"
#include "core/builder.h"
#include "core/testing/gemm.h"
#include "core/testing/mutate.h"
#include "core/verify.h"
#include "core/walk.h"

namespace tessera::check {
namespace {

using core::testing::GemmShape;
using testing::HasSubstr;

core::Kernel made(const GemmShape& s) {
  Result<core::Kernel> k = core::testing::gemm(s);
  if (!k) ADD_FAILURE() << to_text(k.error());
  return std::move(*k);
}

Finding judged(const core::Kernel& k) {
  return *check(k).find("tags");
}

/// With the n-th assertion changed.
void change(core::Body& body, int& n, const std::function<void(core::AssertTag&)>& how) {
  for (core::Op& op : body) {
    if (auto* a = std::get_if<core::AssertTag>(&op.node); a != nullptr && n-- == 0) how(*a);
    if (auto* l = std::get_if<core::For>(&op.node)) change(l->body, n, how);
    if (auto* r = std::get_if<core::Role>(&op.node)) change(r->body, n, how);
  }
}
core::Kernel with(int n, const std::function<void(core::AssertTag&)>& how,
                  const GemmShape& s = {.bn = 64, .stages = 2, .tagged = true}) {
  core::Kernel k = made(s);
  change(k.body, n, how);
  EXPECT_LT(n, 0);
  return k;
}

TEST(CheckTags, WhatHoldsIsProvedForAllSizes) {
  for (const GemmShape& s :
       {GemmShape{.bn = 128, .stages = 2, .tagged = true},
        GemmShape{.bn = 64, .stages = 3, .cluster = 2, .tagged = true},
        GemmShape{.bm = 64, .bn = 64, .stages = 2, .a_rows = true, .b_rows = true, .tagged = true},
        GemmShape{
            .bm = 64, .bn = 64, .stages = 2, .batched = true, .one_a = true, .tagged = true}}) {
    const core::Kernel k = made(s);
    for (const Diagnostic& d : core::verify(k, **arch::find("sm_90a"))) ADD_FAILURE() << to_text(d);
    const Report r = check(k, {}, *means_of(k));
    EXPECT_EQ(r.verdict(), Verdict::proved) << to_text(r);
    EXPECT_EQ(r.find("tags")->reason, "3 assertions");
    EXPECT_EQ(r.coverage.assertions_proved, 3);
    EXPECT_EQ(r.coverage.untagged, 0);
    EXPECT_EQ(r.coverage.outputs_proved, r.coverage.outputs);
  }
}

TEST(CheckTags, OperandsOfOtherPlacesAreRefutedWithTheirWay) {
  int found = 0;
  for (const core::testing::Mutant& m :
       core::testing::mutants(made({.bn = 64, .stages = 2, .tagged = true}))) {
    if (m.name != "next_k") continue;
    const Finding f = judged(m.kernel);
    if (f.verdict != Verdict::refuted) continue;
    ++found;
    const Diagnostic& d = f.diagnostics.front();
    EXPECT_EQ(d.code, "TS0886");
    EXPECT_EQ(d.message, "an element carries another `k` than is asserted");
    EXPECT_THAT(d.expected, HasSubstr("the same as `b["));
    EXPECT_EQ(d.data["kind"], "tags");
  }
  EXPECT_GE(found, 2) << "of A and of B";
}

TEST(CheckTags, AValueThatIsAnotherIsRefutedAtOnce) {
  const Finding f =
      judged(with(1, [](core::AssertTag& a) { a.to = std::get<core::Term>(a.to) + 8; }));
  ASSERT_EQ(f.verdict, Verdict::refuted) << f.reason;
  const Diagnostic& d = f.diagnostics.front();
  EXPECT_EQ(d.message, "an element carries another `row` than is asserted");
  EXPECT_THAT(d.expected, HasSubstr("`acc[0, 0]` carries"));
  EXPECT_THAT(testing::PrintToString(d.notes), HasSubstr("warp 4 (0 of role `consumer`), lane 0"));
}

TEST(CheckTags, NothingAgreesWithNothing) {
  core::Kernel k = made({.bn = 64, .stages = 2, .tagged = true});
  std::erase_if(k.body, [](const core::Op& op) { return op.as<core::Tag>() != nullptr; });
  const Report r = check(k, {}, *means_of(k));
  const Finding& f = *r.find("tags");
  ASSERT_EQ(f.verdict, Verdict::refuted) << f.reason;
  EXPECT_EQ(f.diagnostics.size(), 3U) << "each assertion by itself";
  EXPECT_EQ(f.diagnostics.front().found, "nothing");
  EXPECT_EQ(check(k).coverage.untagged, 2) << "without a meaning";
  EXPECT_EQ(r.coverage.untagged, 0);
}

/// A sum is of several k: no value is asserted of it in vain.
TEST(CheckTags, WhatIsSummedUpOverCarriesSeveral) {
  const Finding f = judged(with(1, [](core::AssertTag& a) { a.name = "k"; }));
  ASSERT_EQ(f.verdict, Verdict::refuted) << f.reason;
  EXPECT_EQ(f.diagnostics.front().found, "several values that met in it");
}

TEST(CheckTags, ApartIsTheContrary) {
  const auto apart = [](int64_t by) {
    return judged(with(1, [&](core::AssertTag& a) {
      a.apart = true;
      a.to = std::get<core::Term>(a.to) + by;
    }));
  };
  EXPECT_EQ(apart(0).verdict, Verdict::refuted);
  EXPECT_EQ(apart(1).verdict, Verdict::proved) << apart(1).reason;
}

TEST(CheckTags, WhatIsNotSeenOrNotFollowedIsUnknown) {
  // The other slot of the ring holds what nobody waits for here.
  const Finding other = judged(with(0, [](core::AssertTag& a) {
    for (core::Tagged* at : {&a.at, &std::get<core::Tagged>(a.to)}) {
      auto& s = std::get<core::SharedAt>(*at);
      s.at[0] = term::floor_mod(s.at[0] + 1, 2);
    }
  }));
  EXPECT_EQ(other.verdict, Verdict::unknown);
  EXPECT_THAT(other.reason, HasSubstr("no instruction beside it reads `a` there"));
  // A race leaves it open.
  for (const core::testing::Mutant& m :
       core::testing::mutants(made({.bn = 64, .stages = 2, .tagged = true})))
    if (m.name == "drop_wait" && m.site == 2) {
      EXPECT_EQ(judged(m.kernel).verdict, Verdict::unknown);
    }
}

std::shared_ptr<pointwise::Dag> one() {
  auto dag = std::make_shared<pointwise::Dag>();
  dag->results = {dag->add_constant(1)};
  return dag;
}
std::shared_ptr<pointwise::Dag> sum_of_two() {
  auto dag = std::make_shared<pointwise::Dag>();
  const int a = dag->add_operand(0), c = dag->add_operand(1);
  dag->results = {dag->add_call("add", {a, c})};
  return dag;
}

/// What is computed joins what it is computed of: a tag said anew, one reset, and exchanged lanes.
TEST(CheckTags, RegistersKeepWhatTheirElementsShare) {
  core::Builder b("k", 32);
  const auto fixed = [&](const char* name, int64_t n) {
    return b.take(b.kernel().pool->coordinate(name, n));
  };
  const core::RegistersId x = b.registers("x", DType::float32, {32, 2},
                                          Layout(IntTuple::flat({32, 2}), IntTuple::flat({1, 32})));
  const core::RegistersId y = b.registers("y", DType::float32, {32},
                                          Layout(IntTuple::flat({32, 1}), IntTuple::flat({1, 0})));
  const core::Term e = fixed("e", 2), zero = b.number(0);
  b.compute({one(), {}, {core::Run{x, zero, Layout(2, 1)}}, 2});
  b.tag({core::Slice{x, e}, "lane", b.at().lane, {e}});
  b.tag({core::Slice{x, e}, "slot", e, {e}});
  b.compute({sum_of_two(),
             {core::Run{x, zero, Layout(1, 0)}, core::Run{x, b.number(1), Layout(1, 0)}},
             {core::Run{y, zero, Layout(1, 0)}},
             1});
  b.assert_tag({core::Slice{y, zero}, "lane", false, b.at().lane, {}});
  b.tag({core::Slice{x, e}, "slot", {}, {e}});
  b.assert_tag({core::Slice{x, e}, "lane", false, core::Tagged(core::Slice{y, zero}), {e}});
  const core::Kernel k = *b.finish();
  EXPECT_EQ(judged(k).verdict, Verdict::proved) << judged(k).reason;
  core::Kernel wrong = k;
  wrong.body.push_back({core::AssertTag{core::Slice{y, zero}, "slot", false, zero, {}}, {}});
  EXPECT_EQ(judged(wrong).verdict, Verdict::refuted) << "several met in the sum";
}

}  // namespace
}  // namespace tessera::check
