// What the checker leaves open, a run may still show to be wrong; and what no run shows stays open.
#include "commands/common/kernel_verdict.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "check/kind.h"
#include "language/language.h"

namespace tessera::commands {
namespace {

using check::Verdict;
using ::testing::HasSubstr;

constexpr const char* moves = "load(X[b.index, m, n], lanes=32), Y[b.index, m, n]";

/// Kernel `name` of `text`, which the machine can run.
Judged judged(const std::string& file, const std::string& text, const std::string& name,
              const std::map<std::string, language::Constant>& constants, bool compare = false) {
  const auto kernel = language::elaborate({file, text}, name, {constants});
  if (!kernel) throw std::runtime_error(to_text(kernel.error()));
  auto out = judge(*kernel, compare);
  if (!out) throw std::runtime_error(to_text(out.error()));
  EXPECT_TRUE(out->runs);
  return std::move(*out);
}

/// kernels/copies.py with an edit.
Judged judged_copy(const std::string& from = "", const std::string& to = "", bool compare = false) {
  std::string text = read_file(source_folder() + "/kernels/copies.py");
  const auto place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return judged("kernels/copies.py", text.replace(place, from.size(), to), "copy",
                {{"WARPS", int64_t{2}}, {"VECTORS", int64_t{2}}}, compare);
}

const check::Finding& placement_of(const Judged& j) {
  return *j.report.find("placement");
}

TEST(KernelVerdict, WhatIsProvedIsRunOnDemand) {
  const Judged j = judged_copy();
  EXPECT_EQ(j.verdict(), Verdict::proved);
  EXPECT_FALSE(j.equal);
  EXPECT_TRUE(judged_copy("", "", true).equal);
}

/// The checker knows no such order of batches. No run differs, and so it stays open.
TEST(KernelVerdict, WhatIsOpenAndRightStaysOpen) {
  const Judged j =
      judged_copy(moves, "load(X[L - 1 - b.index, m, n], lanes=32), Y[L - 1 - b.index, m, n]");
  EXPECT_EQ(j.verdict(), Verdict::unknown);
  ASSERT_TRUE(j.equal);
  EXPECT_EQ(j.equal->verdict, equivalence::Verdict::equal) << to_text(*j.equal);
}

/// As before, but for the elements' batch: the numbers show it.
TEST(KernelVerdict, WhatIsOpenAndWrongIsRefutedByItsNumbers) {
  const Judged j = judged_copy(moves, "load(X[b.index, m, n], lanes=32), Y[L - 1 - b.index, m, n]");
  EXPECT_EQ(j.verdict(), Verdict::refuted);
}

/// Nothing is stored: the run ends with a fault.
TEST(KernelVerdict, WhatIsOpenIsRefutedByAFault) {
  const Judged j = judged_copy("store(load(X[b.index, m, n], lanes=32), Y[b.index, m, n])",
                               "x = load(X[b.index, m, n], lanes=32)");
  EXPECT_EQ(j.verdict(), Verdict::refuted);
  ASSERT_EQ(placement_of(j).diagnostics.size(), 1U);
  const Diagnostic& d = placement_of(j).diagnostics.front();
  EXPECT_EQ(d.data.at("replayed"), "same");
  EXPECT_THAT(d.found, HasSubstr("never written"));
  EXPECT_THAT(d.notes.front(), HasSubstr("is not stored from registers"));
}

/// A kernel of slices: elements of the sum are not counted from one corner.
TEST(KernelVerdict, AWrongSumIsRefutedWithItsElementAndItsLine) {
  std::string text = read_file(source_folder() + "/kernels/gemm_slices.py");
  const std::string from = "P[chunk * AHEAD + u + 1, m, n]";
  text.replace(text.find(from), from.size(), "P[chunk + u + 1, m, n]");
  const Judged j = judged("kernels/gemm_slices.py", text, "reduce", {{"AHEAD", int64_t{4}}});
  EXPECT_EQ(j.verdict(), Verdict::refuted);
  int told = 0;
  for (const check::Finding& f : j.report.findings)
    for (const Diagnostic& d : f.diagnostics) {
      ++told;
      EXPECT_GT(d.place.line, 0);
      EXPECT_EQ(d.data.at("replayed"), "same") << to_text(d);
    }
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace tessera::commands
