// kernels/gemm.py with two roles of consumers that take tiles by turns: proved in its variants, and
// refuted with an edit of the order between the roles or of the turns that they take.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "check/check.h"
#include "check/kind.h"
#include "language/language.h"

namespace tessera::commands {
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
  const char* kind;  // that is refuted
};

TEST(Turns, OfWhichOneIsLostAreRefuted) {
  const char* const condition = "TURNS == 1 or work.turn.index % 2 == w:";
  const char* const out = "for c in parts(BN, PART):";
  const Edit edits[] = {
      {"no order between the roles", "multiplied[work.turn - 1].wait()", "pass", "race_shared"},
      {"the other role goes on at once", "for k in steps:\n                        full",
       "multiplied[work.turn].arrive()\n"
       "                    for k in steps:\n                        full",
       "arrivals"},
      {"nobody is told", "multiplied[work.turn].arrive()", "pass", "deadlock"},
      {"both take even turns", condition, "work.turn.index % 2 == 0:", "deadlock"},
      {"a role takes every fourth turn", condition,
       "work.turn.index % (2 + 2 * w) == w:", "deadlock"},
      {"the second frees no slots", "empty[steps.last].arrive(cluster=True)",
       "if w == 0:\n                        empty[steps.last].arrive(cluster=True)", "deadlock"},
      {"both have the same buffers", "warpgroup + BM // 64", "warpgroup", "race_shared"},
      {"one of two tiles is stored", out,
       "for c in parts(BN if w == 0 else PART, PART):", "placement"},
      {"the first turn is not stored", "store_part(x, result",
       "if work.turn.index > 0: store_part(x, result", "placement"},
      {"late turns are not stored", "store_part(x, result",
       "if work.turn.index < 2: store_part(x, result", "placement"},
      {"every other turn of a role is not stored", "store_part(x, result",
       "if work.turn.index % 4 < 2: store_part(x, result", "placement"},
  };
  for (const Edit& e : edits) {
    std::string text = gemm_text();
    // Of the consumers: behind the producer's part.
    const auto at = text.find(e.from, text.find("with role(\"producer\""));
    const auto place = at == std::string::npos ? text.find(e.from) : at;
    ASSERT_NE(place, std::string::npos) << e.what;
    text.replace(place, std::string(e.from).size(), e.to);
    const auto r = report(text, {});
    ASSERT_TRUE(r) << e.what;
    EXPECT_EQ(r->find(e.kind)->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(*r);
  }
}

}  // namespace
}  // namespace tessera::commands
