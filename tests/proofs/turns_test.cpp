// kernels/gemm.py with two roles of consumers that take tiles by turns: proved in its variants, and
// refuted with an edit of the order between the roles or of the turns that they take.
#include <gtest/gtest.h>
#include <span>

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

std::optional<check::Report> report(const std::string& text, Constants constants) {
  constants.insert({{"TURNS", int64_t{2}}, {"BM", int64_t{64}}, {"BN", int64_t{128}}});
  constants.insert({"STAGES", int64_t{3}});
  const auto kernel = language::elaborate({"gemm.py", text}, "gemm", {constants});
  EXPECT_TRUE(kernel) << to_text(kernel.error());
  if (!kernel) return std::nullopt;
  const auto means = check::means_of(*kernel);
  EXPECT_TRUE(means) << to_text(means.error());
  if (!means) return std::nullopt;
  return check::check(*kernel, {}, *means);
}

TEST(Turns, AreProved) {
  for (const Constants& c : {Constants{},
                             {{"DIRECT", 1}},
                             {{"BM", 128}, {"BN", 64}},
                             {{"STAGES", 8}, {"BN", 64}},
                             {{"BM", 128}, {"ROWS", 128}},
                             {{"BM", 128}, {"ROWS", 128}, {"BN", 96}, {"PART", 32}, {"DIRECT", 1}},
                             {{"BM", 256}, {"ROWS", 128}, {"TURNS", 1}, {"CLUSTER", 2}},
                             {{"A_ORDER", 2}, {"B_ORDER", 2}},
                             {{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}, {"C_ORDER", 1}},
                             {{"CLUSTER", 2}},
                             {{"CLUSTER", 2}, {"BESIDE", 1}}}) {
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

/// The kernel's text with one edit behind the beginning of its producer.
std::string edited(const Edit& e) {
  std::string text = gemm_text();
  const auto place = text.find(e.from, text.find("with role(\"producer\""));
  EXPECT_NE(place, std::string::npos) << e.what;
  return place == std::string::npos ? text : text.replace(place, std::string(e.from).size(), e.to);
}

void refuted(std::span<const Edit> edits, const Constants& constants) {
  for (const Edit& e : edits) {
    const auto r = report(edited(e), constants);
    ASSERT_TRUE(r) << e.what;
    EXPECT_NE(r->verdict(), check::Verdict::proved) << e.what;
    if (e.kind == nullptr) continue;
    EXPECT_EQ(r->find(e.kind)->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(*r);
  }
}

TEST(Turns, WithAnEditAreRefuted) {
  const char* const condition = "TURNS == 1 or work.turn.index % 2 == w:";
  const char* const out = "for c in parts(BN, PART):";
  const Edit edits[] = {
      {"no order between the roles", "multiplied[work.turn - 1].wait()", "pass", "phase_window"},
      {"the other role goes on at once", "for k in steps:\n                        full",
       "multiplied[work.turn].arrive()\n"
       "                    for k in steps:\n                        full",
       "arrivals"},
      {"nobody is told", "multiplied[work.turn].arrive()", "pass", "deadlock"},
      {"both take even turns", condition, "work.turn.index % 2 == 0:", "arrivals"},
      {"a role takes every fourth turn", condition,
       "work.turn.index % (2 + 2 * w) == w:", "deadlock"},
      {"the second frees no slots", "empty[steps.last].arrive(cluster=True)",
       "if w == 0:\n                        empty[steps.last].arrive(cluster=True)", "deadlock"},
      {"both have the same buffers", "warpgroup + groups", "warpgroup", "race_shared"},
      {"one of two tiles is stored", out,
       "for c in parts(BN if w == 0 else PART, PART):", "placement"},
      {"the first turn is not stored", "store_part(x, result",
       "if work.turn.index > 0: store_part(x, result", nullptr},
      {"late turns are not stored", "store_part(x, result",
       "if work.turn.index < 2: store_part(x, result", nullptr},
      {"every other turn of a role is not stored", "store_part(x, result",
       "if work.turn.index % 4 < 2: store_part(x, result", "placement"},
  };
  refuted(edits, {});
}

/// Two accumulators a warpgroup, for the upper and the lower half of its rows.
TEST(Turns, WithAnEditOfTheHalvesAreRefuted) {
  const char* const product = "wgmma(a[k, part(h, high)], b[k].T, sums[h], start=begins)";
  const char* const whole = "if PROMOTE > 0 else sums[h]";
  const char* const rows = "rows = m[part(h, high)]";
  const Edit edits[] = {
      {"both have the upper rows", product,
       "wgmma(a[k, part(0, high)], b[k].T, sums[h], start=begins)", "placement"},
      {"the lower half starts one turn late", product,
       "wgmma(a[k, part(h, high)], b[k].T, sums[h], start=k.index == h)", "initialized"},
      {"the halves are exchanged", whole, "if PROMOTE > 0 else sums[1 - h]", "placement"},
      {"one is stored twice", whole, "if PROMOTE > 0 else acc", "placement"},
      {"both are stored above", rows, "rows = m[part(0, high)]", "placement"},
  };
  refuted(edits, {{"BM", 128}, {"ROWS", 128}});
}

}  // namespace
}  // namespace tessera::proofs
