// kernels/gemm.py with results of 32 bits that leave through shared memory and TMA: proved in its
// variants, and not where they are stored elsewhere.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"

#include "check/check.h"
#include "check/kind.h"
#include "core/parse.h"
#include "core/print.h"
#include "language/language.h"

namespace tessera::proofs {
namespace {

using Constants = std::map<std::string, language::Constant>;

std::string gemm_text() {
  return read_file(source_folder() + "/kernels/gemm.py");
}

Result<core::Kernel> kernel_of(const std::string& text, Constants constants) {
  constants.insert({{"ELEMENT", std::string("f32")},
                    {"ROUND", int64_t{1}},
                    {"BN", int64_t{64}},
                    {"BK", int64_t{32}},
                    {"PART", int64_t{32}},
                    {"STAGES", int64_t{3}}});
  return language::elaborate({"gemm.py", text}, "gemm", {constants});
}

check::Report report(const Result<core::Kernel>& kernel) {
  EXPECT_TRUE(kernel) << to_text(kernel.error());
  if (!kernel) return {};
  const auto means = check::means_of(*kernel);
  EXPECT_TRUE(means) << to_text(means.error());
  return means ? check::check(*kernel, {}, *means) : check::Report{};
}

TEST(WideResults, AreProved) {
  for (const Constants& c : {Constants{},
                             {{"BM", 64}},
                             {{"BM", 128}, {"ROWS", 128}, {"BN", 96}},
                             {{"TURNS", 2}, {"BM", 64}},
                             {{"TURNS", 2}, {"ROWS", 128}, {"BN", 32}},
                             {{"CLUSTER", 2}, {"BESIDE", 1}},
                             {{"BATCHES", 1}, {"A_BATCHES", 1}, {"B_BATCHES", 1}, {"C_ORDER", 1}},
                             {{"ELEMENT", std::string("bf16")},
                              {"RESULT", std::string("f32")},
                              {"ROUND", 0},
                              {"BK", 64}}}) {
    const check::Report r = report(kernel_of(gemm_text(), c));
    EXPECT_EQ(r.verdict(), check::Verdict::proved) << to_text(r);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted
};

std::string edited(std::string text, const Edit& e, std::size_t behind) {
  const auto place = text.find(e.from, behind);
  EXPECT_NE(place, std::string::npos) << e.what;
  return place == std::string::npos ? text : text.replace(place, std::string(e.from).size(), e.to);
}

TEST(WideResults, WithAnEditAreRefuted) {
  constexpr Edit edits[] = {
      {"no fence", "    fence.async_shared()\n", "", "proxy_fence"},
      {"no meeting behind the stores", "fence.async_shared()\n    sync(\"warpgroup\")",
       "fence.async_shared()", "race_shared"},
      {"a buffer is written while it is read", "bulk.wait_read(1)", "bulk.wait_read(2)",
       "race_shared"},
      {"twice as much", "result[:] = x\n", "result[:] = x + x\n", "placement"},
      {"the other part's place", "to[part(warpgroup, 64), :]", "to[part(1 - warpgroup, 64), :]",
       "placement"},
  };
  for (const Edit& e : edits) {
    const std::string text = gemm_text();
    const auto r = report(kernel_of(edited(text, e, text.find("def store_part")), {{"BN", 128}}));
    EXPECT_NE(r.verdict(), check::Verdict::proved) << e.what;
    const auto* found = r.find(e.kind);
    ASSERT_NE(found, nullptr) << e.what;
    EXPECT_EQ(found->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(r);
  }
}

/// Where threads store, which the word `store_rows` decides: edits of the core's text.
TEST(WideResults, StoredElsewhereAreRefuted) {
  const auto kernel = kernel_of(gemm_text(), {});
  ASSERT_TRUE(kernel);
  const std::string text = to_string(*kernel);
  const auto store = text.find("issue(\"store.shared.8\"");
  ASSERT_NE(store, std::string::npos);
  constexpr Edit edits[] = {
      {"another row", "lane // 4", "(lane // 4 + 1) % 8", "placement"},
      {"the rows the other way round", "lane // 4", "(7 - lane // 4)", "placement"},
      {"another column", "lane % 4 * 2", "(lane + 1) % 4 * 2", "placement"},
      {"other registers", "result[j * 2]", "result[(j + 1) % 8 * 2]", "placement"},
  };
  for (const Edit& e : edits) {
    const auto r = report(core::parse("gemm", edited(text, e, store)));
    const auto* found = r.find(e.kind);
    ASSERT_NE(found, nullptr) << e.what;
    EXPECT_EQ(found->verdict, check::Verdict::refuted) << e.what << "\n" << to_text(r);
  }
}

}  // namespace
}  // namespace tessera::proofs
