// Mask tensors in kernels/attention.py: proved, and never with the mask of another head, query or
// key.
#include <gtest/gtest.h>

#include "base/thorough.h"

#include "proofs/attention_edits.h"

namespace tessera::proofs {
namespace {

Constants with(Constants c, const Constants& more) {
  for (const auto& [name, value] : more) c[name] = value;
  return c;
}

const Constants shows = {{"MASK", 1}, {"MULTIPLE", 2}}, added = {{"MASK", 2}, {"MULTIPLE", 2}};
const language::Constant cap = std::string("50.0"), f32 = std::string("f32");

TEST(AttentionMask, VariantsAreProved) {
  std::vector<Constants> variants = {
      shows, added, with(added, {{"CAP", cap}, {"CAUSAL", 1}, {"MASK_ROWS", 0}, {"MULTIPLE", 1}})};
  if (thorough())
    variants.insert(variants.end(),
                    {with(shows, {{"MULTIPLE", 1}}), with(added, {{"MASK_ELEMENT", f32}}),
                     with(shows, {{"LEFT", 20}, {"CAUSAL", 1}, {"CAP", cap}}),
                     with(added, {{"SCALE", std::string("1.0")}}), with(shows, {{"MASK_ROWS", 0}}),
                     with(shows, {{"GROUPS", 2}, {"D", 128}, {"KEYS", 128}, {"STRIDED", 1}}),
                     with(added, {{"GROUPS", 2}, {"D", 128}, {"KEYS", 128}, {"STRIDED", 1}})});
  expect_all_proved(variants);
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind = nullptr;  // that is refuted; nullptr: it is not proved
  bool of_added = false;
};

constexpr const char* load = "M[batch, head, mask_rows, part(key_blocks - 1 - step.index, KEYS)]";
constexpr const char* show = "scores[:] = where(given, scores, -inf)";
constexpr const char* add = "scores[:] = scores * (CAP if CAP > 0 else scale) + given";
constexpr const char* empty = "share[:] = where(most == -inf, 0.0, share)";

constexpr Edit edits[] = {
    {"the mask of the heads that share keys", load,
     "M[batch, head * G // H, mask_rows, part(key_blocks - 1 - step.index, KEYS)]", "mask"},
    {"the mask of the first head", load,
     "M[batch, 0, mask_rows, part(key_blocks - 1 - step.index, KEYS)]", "mask"},
    {"the mask of the first batch", load,
     "M[0, head, mask_rows, part(key_blocks - 1 - step.index, KEYS)]", "mask"},
    {"batch and head exchanged", load,
     "M[head, batch, mask_rows, part(key_blocks - 1 - step.index, KEYS)]"},
    {"the keys of the next block", load,
     "M[batch, head, mask_rows, part(key_blocks - step.index, KEYS)]", "mask"},
    {"keys up while the blocks come down", load,
     "M[batch, head, mask_rows, part(step.index, KEYS)]", "mask"},
    {"the queries of the next tile", "mask_rows = queries if MASK_ROWS == 1",
     "mask_rows = part(queries.index + 1, queries.size) if MASK_ROWS == 1", "mask"},
    {"the first queries", "mask_rows = queries if MASK_ROWS == 1",
     "mask_rows = part(0, queries.size) if MASK_ROWS == 1", "mask"},
    {"the contrary", show, "scores[:] = where(given, -inf, scores)", "mask"},
    {"a low score", show, "scores[:] = where(given, scores, -100.0)", "mask"},
    {"no mask", show, "pass", "mask"},
    {"no mask in the first step", "                if MASK == 1:\n",
     "                if MASK == 1 and step.index > 0:\n"},
    {"NaN in a row that sees no key", empty, "pass", "placement"},
    {"1 in a row that sees no key", empty, "share[:] = where(most == -inf, 1.0, share)"},
    {"-inf from -inf", "shift[:] = where(most == -inf, 0.0, most * (scale * LOG2_E))",
     "shift[:] = most * (scale * LOG2_E)", "degenerate"},
    {"added to scores that are not scaled", add, "scores[:] = scores + given", "placement", true},
    {"added before the scale", add, "scores[:] = (scores + given) * scale", nullptr, true},
    {"added twice", add, "scores[:] = scores * scale + given + given", nullptr, true},
    {"taken off", add, "scores[:] = scores * scale - given", nullptr, true},
    {"as a truth value", add, "scores[:] = where(given, scores, -inf)", "mask", true},
    {"the added mask of another head", load,
     "M[batch, H - 1, mask_rows, part(key_blocks - 1 - step.index, KEYS)]", "mask", true},
    {"scaled twice", "exp2_flushed((scores - finite) * LOG2_E)",
     "exp2_flushed((scores - finite) * (2 * LOG2_E))", nullptr, true},
};

TEST(AttentionMask, EditsAreNotProved) {
  for (const Edit& e : edits)
    expect_not_proved(e.what, e.from, e.to, e.kind, e.of_added ? added : shows);
}

/// A right kernel beside another meaning.
TEST(AttentionMask, AnotherMeaningIsNotProved) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"j, 0 if MASK > 0 else nan)", "j)"},
           {"where(M[b, h, i * MASK_ROWS, j], 0, -inf) if",
            "where(M[b, 0, i * MASK_ROWS, j], 0, -inf) if"},
           {"where(M[b, h, i * MASK_ROWS, j], 0, -inf) if", "where(M[b, h, 0, j], 0, -inf) if"},
           {"where(M[b, h, i * MASK_ROWS, j], 0, -inf) if", "0 if"}}) {
    std::string text = attention_text();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const check::Report r = attention_report(text, shows);
    EXPECT_NE(r.verdict(), check::Verdict::proved) << to;
  }
}

TEST(AttentionMask, OtherMeaningsOfAMaskAreRefused) {
  for (const char* to : {"where(M[b, h, i * MASK_ROWS, e], 0, -inf) if",
                         "where(M[b, h, i * MASK_ROWS, j], 0, -100) if",
                         "M[b, h, i * MASK_ROWS, j] if", "where(O[b, h, i, j], 0, -inf) if"}) {
    std::string text = attention_text();
    const std::string from = "where(M[b, h, i * MASK_ROWS, j], 0, -inf) if";
    text.replace(text.find(from), from.size(), to);
    EXPECT_THROW(attention_report(text, shows), std::runtime_error) << to;
  }
}

}  // namespace
}  // namespace tessera::proofs
