// Bytes that one thread expects, and an arrival of another: the phase must not complete before the
// expectation.
#include <gtest/gtest.h>

#include "base/text.h"

#include "check/runs.h"
#include "core/parse.h"
#include "simulate/simulate.h"

namespace tessera::agreement {
namespace {

/// `met`: the one who arrives has met the one who expects.
core::Kernel apart(bool met) {
  const std::string text = R"core(
@kernel(threads=96, cluster=1, min_blocks=1, grid=1)
def apart(x: Tensor[f32, (32,), (1,)]):
    s = shared(f32, "32:1", swizzle=None, at=0)
    full = barriers(1, at=128)
    if warp == 0:
        with elected():
            issue("mbarrier.init", full[0], 1)
            issue("fence.mbarrier_init")
    issue("barrier.sync", 0, 96)
    with role(copier, warps=[0, 1]) as c:
        with elected():
            issue("mbarrier.expect_tx", full[0], 128)
        MEET
        with elected():
            issue("bulk.load", s[0], x[0], 128, full[0])
    with role(arriver, warps=[1, 2]) as a:
        MEET
        with elected():
            issue("mbarrier.arrive", full[0])
    with role(reader, warps=[2, 3]) as r:
        v = registers(f32, [32], "(32,1):(1,32)")
        issue("mbarrier.wait", full[0], 0)
        issue("load.shared.4", v[0], s[lane])
)core";
  const Result<core::Kernel> k = core::parse(
      "apart.py", replace_all(text, "MEET", met ? R"(issue("barrier.sync", 1, 64))" : "pass"));
  if (!k) throw std::logic_error(to_text(k.error()));
  return *k;
}

simulate::Exploration explored(const core::Kernel& k) {
  const Result<simulate::Simulator> s =
      simulate::Simulator::make(k, {.inputs = {{"x", std::vector<double>(32, 1.0)}}});
  if (!s) throw std::logic_error(to_text(s.error()));
  return s->explore(1000);
}

TEST(AgreementExpectation, ComesBeforeAnArrivalOfItsPhase) {
  const check::Runs runs = check::run(apart(true));
  EXPECT_TRUE(runs.proved) << runs.why_not;
  const simulate::Exploration e = explored(apart(true));
  EXPECT_TRUE(e.complete);
  for (const Diagnostic& d : e.last.findings) ADD_FAILURE() << to_text(d);
}

TEST(AgreementExpectation, MayComeTooLateForAnArrivalOfAnother) {
  const check::Runs runs = check::run(apart(false));
  ASSERT_FALSE(runs.violations.empty());
  EXPECT_EQ(runs.violations.front().kind, "arrivals");
  EXPECT_EQ(runs.violations.front().message,
            "a phase may be complete before it expects these bytes");
  EXPECT_FALSE(explored(apart(false)).last.findings.empty());
}

}  // namespace
}  // namespace tessera::agreement
