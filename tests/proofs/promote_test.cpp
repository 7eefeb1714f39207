// kernels/gemm.py with sums that are promoted to float32 on the way: proved in its variants, and
// refuted with an edit of when accumulators begin anew, or of what is added up.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "check/check.h"
#include "check/kind.h"
#include "language/language.h"

namespace tessera::proofs {
namespace {

using Constants = std::map<std::string, language::Constant>;

std::string gemm_text() {
  return read_file(source_folder() + "/kernels/gemm.py");
}

Result<core::Kernel> kernel_of(const std::string& text, Constants constants) {
  constants.insert({{"PROMOTE", int64_t{2}},
                    {"ELEMENT", std::string("e4m3")},
                    {"RESULT", std::string("bf16")},
                    {"BN", int64_t{64}},
                    {"BK", int64_t{128}},
                    {"STAGES", int64_t{4}},
                    {"K_MULTIPLE", int64_t{16}}});
  return language::elaborate({"gemm.py", text}, "gemm", {constants});
}

std::optional<check::Report> report(const std::string& text, const Constants& constants) {
  const auto kernel = kernel_of(text, constants);
  EXPECT_TRUE(kernel) << to_text(kernel.error());
  if (!kernel) return std::nullopt;
  const auto means = check::means_of(*kernel);
  EXPECT_TRUE(means) << to_text(means.error());
  if (!means) return std::nullopt;
  return check::check(*kernel, {}, *means);
}

TEST(Promoted, SumsAreProved) {
  for (const Constants& c : {Constants{},
                             {{"PROMOTE", 1}},
                             {{"PROMOTE", 4}},
                             {{"PROMOTE", 2}, {"STAGES", 5}},
                             {{"DIRECT", 1}, {"RESULT", std::string("f32")}},
                             {{"TURNS", 2}, {"BM", 64}},
                             {{"BM", 256}, {"ROWS", 128}},
                             {{"CLUSTER", 2}},
                             {{"ELEMENT", std::string("bf16")}, {"BK", 64}}}) {
    const auto r = report(gemm_text(), c);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->verdict(), check::Verdict::proved) << to_text(*r);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted; nullptr: none has to be, but nothing is proved
};

std::string edited(const Edit& e) {
  std::string text = gemm_text();
  const auto place = text.find(e.from, text.find("with role(\"producer\""));
  EXPECT_NE(place, std::string::npos) << e.what;
  return place == std::string::npos ? text : text.replace(place, std::string(e.from).size(), e.to);
}

constexpr const char* when = "if k.index > 0 and k.count % PROMOTE == 0:";
constexpr const char* begins = "begins = k.first or k.count % PROMOTE == 0";
constexpr const char* add = "totals[u][:] = totals[u] + sums[u]";
constexpr const char* last = "totals[h][:] = totals[h] + sums[h]";
constexpr Edit edits[] = {
    {"never added up", when, "if k.index > 0 and k.count % PROMOTE == 7:", nullptr},
    {"every second sum is added up", when,
     "if k.index > 0 and k.count % (2 * PROMOTE) == 0:", "reduction"},
    {"added up too often", when, "if k.index > 0:", "reduction"},
    {"added up in the first turn", when, "if k.count % PROMOTE == 0:", "initialized"},
    {"added up twice", add,
     "totals[u][:] = totals[u] + sums[u]\n"
     "                                    totals[u][:] = totals[u] + sums[u]",
     "reduction"},
    {"twice as much is added", add, "totals[u][:] = totals[u] + 2.0 * sums[u]", nullptr},
    {"taken away", add, "totals[u][:] = totals[u] - sums[u]", nullptr},
    {"not begun anew", begins, "begins = k.first", "reduction"},
    {"begun anew where a tile goes on", begins, "begins = k.count % PROMOTE == 0", "reduction"},
    {"added up before they are complete", "wgmma.wait(0)", "wgmma.wait(1)", "async_registers"},
    {"the last sum is lost", last, "totals[h][:] = totals[h] + 0.0", "placement"},
    {"all but the last sum is lost", last, "totals[h][:] = sums[h]", "placement"},
    {"the last sum counts twice", last, "totals[h][:] = totals[h] + 2.0 * sums[h]", "placement"},
    {"the total begins at one", "clear(totals)", "totals[0][:] = 1.0", "placement"},
    {"the total is not cleared", "clear(totals)", "if work.turn.index == 0: clear(totals)",
     nullptr},
    {"the total stays as it was", add, "totals[u][:] = sums[u]", nullptr},
};

TEST(Promoted, SumsWithAnEditAreRefuted) {
  for (const Edit& e : edits) {
    const auto r = report(edited(e), {});
    ASSERT_TRUE(r) << e.what;
    EXPECT_NE(r->verdict(), check::Verdict::proved) << e.what;
    if (e.kind == nullptr) continue;
    EXPECT_EQ(r->find(e.kind)->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(*r);
  }
}

/// With at most two turns a tile no later turn's count is a multiple of four: the last sum is all
/// of it, in every launch, and nothing is refuted.
TEST(Promoted, SumsThatAreNeverPartedAreNotRefuted) {
  const std::string bound = "below=1 << (19 if BATCHES == 1 else 20)";
  std::string text = edited({"", last, "totals[h][:] = sums[h]", nullptr});
  text.replace(text.find(bound, text.find("    K: index(")), bound.size(), "below=257");
  const auto r = report(text, {{"PROMOTE", 4}});
  ASSERT_TRUE(r);
  EXPECT_EQ(r->find("reduction")->verdict, check::Verdict::proved) << to_text(*r);
  EXPECT_EQ(r->find("placement")->verdict, check::Verdict::unknown) << to_text(*r);
}

TEST(Promoted, SumsOfHalvesWithAnEditAreNotProved) {
  const Edit halves[] = {
      {"one half is added to both", add, "totals[u][:] = totals[u] + sums[0]", nullptr},
      {"both are added to one", add, "totals[0][:] = totals[0] + sums[u]", nullptr},
      {"the totals are exchanged", last, "totals[h][:] = totals[1 - h] + sums[h]", "placement"},
  };
  for (const Edit& e : halves) {
    const auto r = report(edited(e), {{"BM", 128}, {"ROWS", 128}, {"BN", 32}, {"PART", 32}});
    ASSERT_TRUE(r) << e.what;
    EXPECT_NE(r->verdict(), check::Verdict::proved) << e.what;
    if (e.kind == nullptr) continue;
    EXPECT_EQ(r->find(e.kind)->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(*r);
  }
}

}  // namespace
}  // namespace tessera::proofs
