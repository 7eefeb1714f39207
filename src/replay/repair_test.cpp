// Edits that repair a refuted kernel: found where one edit broke it, and shown only if all is
// proved.
#include "replay/repair.h"

#include <gtest/gtest.h>

#include "core/testing/gemm.h"
#include "core/testing/mutate.h"

namespace tessera::replay {
namespace {

using core::testing::Mutant;

core::Kernel good() {
  return *core::testing::gemm({.bm = 64, .bn = 64, .stages = 2, .tagged = true});
}

/// What repairs the first mutant of this name at this site; empty: nothing does.
std::string repaired(const std::string& name, int site) {
  for (const Mutant& m : core::testing::mutants(good())) {
    if (m.name != name || m.site != site) continue;
    const auto means = *check::means_of(m.kernel);
    check::Report r = check::check(m.kernel, {}, means);
    EXPECT_EQ(r.verdict(), check::Verdict::refuted) << name;
    const std::optional<Repair> found = repair(m.kernel, means, r);
    if (!found) return "";
    show(*found, m.kernel, r);
    for (const check::Finding& f : r.findings)
      if (f.verdict == check::Verdict::refuted) {
        EXPECT_EQ(f.diagnostics.front().data["repair"], found->edit);
      }
    return found->edit;
  }
  ADD_FAILURE() << "no mutant " << name << " " << site;
  return "";
}

TEST(Repair, FindsTheEditThatUndoesAnother) {
  EXPECT_NE(repaired("next_k", 0), "") << "a copy of another turn";
  EXPECT_NE(repaired("drop_fence", 1), "") << "a fence";
}

TEST(Repair, ShowsNothingWhereNoEditProves) {
  core::Kernel k = good();
  for (core::Barriers& b : k.barriers) b.count = 1;  // rings of two slots
  const auto means = *check::means_of(k);
  const check::Report r = check::check(k, {}, means);
  ASSERT_EQ(r.verdict(), check::Verdict::refuted);
  EXPECT_FALSE(repair(k, means, r, {.edits = 8}));
}

}  // namespace
}  // namespace tessera::replay
