// Capped scores in kernels/attention.py: proved, and never with a cap in another place.
#include <gtest/gtest.h>

#include "base/thorough.h"

#include "proofs/attention_edits.h"

namespace tessera::proofs {
namespace {

const language::Constant cap = std::string("50.0");

TEST(AttentionCap, VariantsAreProved) {
  std::vector<Constants> variants = {{{"CAP", cap}},
                                     {{"CAP", cap}, {"CAUSAL", 1}, {"LEFT", 20}},
                                     {{"CAP", cap}, {"SCALE", std::string("0.0625")}}};
  if (thorough())
    variants.insert(
        variants.end(),
        {{{"CAP", cap}, {"CAUSAL", 1}, {"GROUPS", 2}, {"D", 256}, {"KEYS", 64}, {"Q_SLOTS", 1}},
         {{"CAP", cap}, {"CAUSAL", 1}, {"GROUPS", 3}, {"STRIDED", 1}}});
  expect_all_proved(variants);
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
  const char* kind = nullptr;  // that is refuted; nullptr: it is not proved
};

constexpr const char* line =
    "                if CAP > 0:\n"
    "                    scores[:] = tanh_approx(scores * (scale / CAP))\n";
constexpr const char* product = "tanh_approx(scores * (scale / CAP))";

constexpr Edit edits[] = {
    {"no cap", line, "", "placement"},
    {"a cap in the first step alone", "if CAP > 0:\n                    scores",
     "if CAP > 0 and step.index == 0:\n                    scores"},
    {"a cap in all steps but the first", "if CAP > 0:\n                    scores",
     "if CAP > 0 and step.index > 0:\n                    scores"},
    {"a cap twice", line,
     "                scores[:] = tanh_approx(scores * (scale / CAP))\n"
     "                scores[:] = tanh_approx(scores * (scale / CAP))\n"},
    {"the tanh of scores that are not scaled", product, "tanh_approx(scores)", "placement"},
    {"the tanh of scores times the cap", product, "tanh_approx(scores * (scale * CAP))",
     "placement"},
    {"a scale on both sides of the tanh", "soften(scores, most, total, CAP if CAP > 0 else scale)",
     "soften(scores, most, total, CAP * scale)", "placement"},
    {"no cap behind the tanh", "soften(scores, most, total, CAP if CAP > 0 else scale)",
     "soften(scores, most, total, scale)", "placement"},
    {"another function", product, "sigmoid(scores * (scale / CAP))"},
    {"the contrary", product, "tanh_approx(scores * (-scale / CAP))"},
    {"the greatest score is capped, not the scores", line,
     "                most[:] = tanh_approx(most * (scale / CAP))\n"},
    {"capped powers", "                powers[:] = scores\n",
     "                powers[:] = tanh_approx(scores)\n"},
    {"the greatest score without a cap", "max(most, amax(scores, axis=1))",
     "max(most, amax(scores, axis=1) * 2)"},
};

TEST(AttentionCap, EditsAreNotProved) {
  for (const Edit& e : edits)
    expect_not_proved(e.what, e.from, e.to, e.kind, {{"CAP", cap}, {"CAUSAL", 1}});
}

/// tanh(-inf) is -1: a key that is hidden first would get a weight.
TEST(AttentionCap, ACapBehindTheMaskIsRefuted) {
  std::string text = edited_attention(line, "");
  const std::string before =
      "                if MASK == 2:\n                    factor = soften_added(";
  const std::size_t at = text.find(before);
  ASSERT_NE(at, std::string::npos);
  text.insert(at, line);
  const check::Report r = attention_report(text, {{"CAP", cap}, {"CAUSAL", 1}});
  EXPECT_EQ(r.find("mask")->verdict, check::Verdict::refuted) << to_text(r);
}

/// A right kernel beside another meaning.
TEST(AttentionCap, AnotherMeaningIsNotProved) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"CAP * tanh((SCALE", "tanh((SCALE"},
           {"D**-0.5) / CAP * sum", "D**-0.5) * sum"},
           {"CAP * tanh((SCALE if SCALE > 0 else D**-0.5) / CAP * sum(Q[b, h, i, d] * K[b, h * G "
            "// H, j, d], d)) if CAP > 0 else ",
            ""}}) {
    std::string text = attention_text();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const check::Report r = attention_report(text, {{"CAP", cap}});
    EXPECT_NE(r.verdict(), check::Verdict::proved) << from;
  }
}

}  // namespace
}  // namespace tessera::proofs
