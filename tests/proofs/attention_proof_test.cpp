// Attention is proved in its variants, and refuted with an edit of what its softmax, its masks or
// its copies do. The kernel has a block for each tile: tests/kernels/attention_tiles.py.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/check.h"
#include "check/kind.h"
#include "language/language.h"

namespace tessera::proofs {
namespace {

using Constants = std::map<std::string, language::Constant>;

std::string kernel_text() {
  return read_file(source_folder() + "/tests/kernels/attention_tiles.py");
}

std::optional<check::Report> report(const std::string& text, Constants constants) {
  constants.insert({{"D", int64_t{32}}, {"KEYS", int64_t{16}}, {"GROUPS", int64_t{1}}});
  constants.insert({"TURNS", std::get<int64_t>(constants.at("GROUPS")) > 1 ? 1 : 0});
  const auto kernel = language::elaborate({"attention.py", text}, "attention", {constants});
  EXPECT_TRUE(kernel) << to_text(kernel.error());
  if (!kernel) return std::nullopt;
  const auto means = check::means_of(*kernel);
  EXPECT_TRUE(means) << to_text(means.error());
  if (!means) return std::nullopt;
  return check::check(*kernel, {}, *means);
}

TEST(AttentionProof, VariantsAreProved) {
  std::vector<Constants> variants = {{}, {{"CAUSAL", 1}}, {{"CAUSAL", 1}, {"GROUPS", 2}}};
  if (thorough())
    variants.insert(variants.end(), {{{"GROUPS", 2}, {"TURNS", 0}, {"KEYS", 32}},
                                     {{"STAGES", 3}, {"D", 64}, {"STRIDED", 1}},
                                     {{"GROUPS", 3}, {"CAUSAL", 1}, {"STAGES", 3}}});
  for (const Constants& c : variants) {
    const auto r = report(kernel_text(), c);
    ASSERT_TRUE(r);
    EXPECT_EQ(r->verdict(), check::Verdict::proved) << to_text(*r);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind;  // that is refuted; nullptr: it is as right, and proved
  int64_t causal = 1;
};

/// The kernel's text with one edit behind its meaning.
std::string edited(const Edit& e) {
  std::string text = kernel_text();
  const std::size_t at = text.find(e.from, text.find("def attention"));
  EXPECT_NE(at, std::string::npos) << e.what;
  return at == std::string::npos ? text : text.replace(at, std::string(e.from).size(), e.to);
}

constexpr Edit edits[] = {
    {"no factor", "                    sums *= factor\n", "", "rescale"},
    {"the factor twice", "sums *= factor\n", "sums *= factor * factor\n", "rescale"},
    {"no factor of the total", "total * factor +", "total +", "rescale"},
    {"the total's factor twice", "total * factor +", "total * factor * factor +", "rescale"},
    {"the greatest of the turn alone", "max(most, amax(scores, axis=1))", "amax(scores, axis=1)",
     "dominance"},
    {"the greatest before", "most[:] = max(most, amax(scores, axis=1))", "most[:] = most",
     "dominance"},
    {"the factor's contrary", "exp2_flushed(before * (scale * LOG2_E) - shift)",
     "exp2_flushed(shift - before * (scale * LOG2_E))", "dominance"},
    {"e for 2", "scores[:] = exp2_flushed(scores * (scale * LOG2_E) - shift)",
     "scores[:] = exp2_flushed(scores * scale - shift)", "dominance"},
    {"another scale of the softmax", "SCALE if SCALE > 0 else D**-0.5)\n", "D**-0.25)\n",
     "placement"},
    {"the head of queries", "head.index * G // H", "head.index", "k_agreement"},
    {"the quotient first", "head.index * G // H", "head.index // H * G", "k_agreement"},
    {"one batch", "V[batch.index, shared_head", "V[0, shared_head", "k_agreement"},
    {"queries of one head", "Q[batch.index, head.index, queries", "Q[batch.index, 0, queries",
     "k_agreement"},
    {"a block too far", "keys = part(steps.turns - 1 - step.index",
     "keys = part(steps.turns - step.index", "reduction"},
    {"values in another order", "V[batch.index, shared_head, keys,",
     "V[batch.index, shared_head, part(step.index, KEYS),", "k_agreement"},
    {"one key past the end", "TK <= key or", "TK < key or", "mask", 0},
    {"the diagonal is hidden", "query + TK - TQ < key)", "query + TK - TQ <= key)", "mask"},
    {"a mask that is left out", "if TK < last_key or", "if TK < last_key - 1 or", "mask", 0},
    {"a mask that is left out at the diagonal", "first_query + TK - TQ + 1 < last_key",
     "first_query + TK - TQ + 2 < last_key", "mask"},
    {"a mask of the last row", "first_query + TK - TQ + 1 < last_key",
     "first_query + 64 + TK - TQ < last_key", "mask"},
    {"a mask one key off", "mask(scores, queries.start, first_key, TQ",
     "mask(scores, queries.start, first_key + 1, TQ", "mask"},
    {"no mask", "                mask(scores, queries.start, first_key, TQ, TK, CAUSAL)\n", "",
     "mask"},
    {"hidden scores of 0", "-inf, scores)", "0.0, scores)", "mask"},
    {"no way out of -inf", "where(most == -inf, 0.0, most * (scale * LOG2_E))",
     "most * (scale * LOG2_E)", "degenerate"},
    {"no way out of -inf, where none is needed",
     "where(most == -inf, 0.0, most * (scale * LOG2_E))", "most * (scale * LOG2_E)", nullptr, 0},
    {"a total that begins with 1", "total[:] = 0.0", "total[:] = 1.0", nullptr},
    {"no division", "result[:] = sums * share", "result[:] = sums", "placement"},
    {"values of the first turn", "v[steps.last].T, sums)", "v[0].T, sums)", "k_agreement"},
    {"all of one head", "tma.store(q[own, :], O[batch.index, head.index",
     "tma.store(q[own, :], O[batch.index, 0", "k_agreement"},
    {"too few steps", "queries.start + queries.size + TK - TQ)) if", "queries.start + TK - TQ)) if",
     "reduction"},
    {"another tile", "part(cdiv(TQ, m.size) - 1 - m.index", "part(cdiv(TQ, m.size) - m.index",
     "output_once"},
};

TEST(AttentionProof, EditsAreRefuted) {
  for (const Edit& e : edits) {
    const auto r = report(edited(e), {{"CAUSAL", e.causal}});
    ASSERT_TRUE(r) << e.what;
    if (e.kind == nullptr) {
      EXPECT_EQ(r->verdict(), check::Verdict::proved) << e.what << "\n" << to_text(*r);
    } else {
      EXPECT_EQ(r->find(e.kind)->verdict, check::Verdict::refuted)
          << e.what << " shall be of " << e.kind << "\n"
          << to_text(*r);
    }
  }
}

}  // namespace
}  // namespace tessera::proofs
