// Kernel files on residues: both families are what they mean at small sizes, and edits that change
// a value are not.
#include "equivalence/equivalence.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/source_folder.h"
#include "base/thorough.h"

#include "check/kind.h"
#include "proofs/attention_variant.h"

namespace tessera::proofs {
namespace {

using equivalence::Answer;
using equivalence::Verdict;

Answer compared(const std::string& text, const std::string& name, const Constants& constants,
                const std::string& means = "", int launches = 4) {
  const auto kernel = language::elaborate({name + ".py", text}, name, {constants, means});
  if (!kernel) throw std::runtime_error(to_text(kernel.error()));
  const auto meaning = check::means_of(*kernel);
  if (!meaning) throw std::runtime_error(to_text(meaning.error()));
  const check::Report r = check::check(*kernel, {}, *meaning);
  return equivalence::compare(*kernel, **meaning, r.sizes, {.launches = launches});
}

Answer attention(const std::string& text, Constants constants, int launches = 4) {
  constants.insert({{"D", int64_t{32}}, {"KEYS", int64_t{16}}, {"GROUPS", int64_t{1}}});
  constants.insert({"TURNS", std::get<int64_t>(constants.at("GROUPS")) > 1 ? 1 : 0});
  return compared(text, "attention", constants, "", launches);
}

constexpr const char* functions =
    "\n\ndef curve(x, batch, m, n):\n"
    "    return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))\n"
    "\n\ndef gate(x, batch, m, n):\n    return x / (1.0 + exp(-x))\n"
    "\n\ndef wrong_curve(x, batch, m, n):\n"
    "    return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x)))\n";

Answer gemm(Constants constants, const std::string& means = "") {
  constants.insert({{"BM", int64_t{64}},
                    {"BN", int64_t{32}},
                    {"PART", int64_t{32}},
                    {"BK", int64_t{16}},
                    {"STAGES", int64_t{2}}});
  return compared(read_file(source_folder() + "/kernels/gemm.py") + functions, "gemm", constants,
                  means);
}

const language::Constant cap = std::string("50.0");

TEST(KernelEquivalence, Products) {
  const std::string sum = "sum(A[i, k] * B[j, k], k)";
  const std::vector<std::pair<Constants, std::string>> all = {
      {{}, ""},
      {{{"CLUSTER", 2}, {"TURNS", 2}}, ""},
      {{{"DIRECT", 1},
        {"ELEMENT", std::string("e4m3")},
        {"RESULT", std::string("f32")},
        {"BK", 32},
        {"PROMOTE", 2},
        {"M_MULTIPLE", 16},
        {"N_MULTIPLE", 16},
        {"K_MULTIPLE", 16}},
       ""},
      {{{"DIRECT", 1}, {"ELEMENT", std::string("f32")}, {"ROUND", 1}}, ""},
      {{{"PART", 32}, {"ELEMENT", std::string("f32")}, {"ROUND", 1}}, ""},
      {{{"epilogue", std::string("gelu_tanh")}}, "C[i, j] = gelu_tanh(" + sum + ")"},
      {{{"epilogue", std::string("gate")}}, "C[i, j] = silu(" + sum + ")"},
      {{{"epilogue", std::string("erf")}}, "C[i, j] = erf(" + sum + ")"},
  };
  for (const auto& [constants, means] : all) {
    const Answer a = gemm(constants, means);
    EXPECT_EQ(a.verdict, Verdict::equal) << means << " " << to_text(a);
  }
}

TEST(KernelEquivalence, WrongEpilogues) {
  const std::string sum = "sum(A[i, k] * B[j, k], k)";
  const std::vector<std::pair<std::string, std::string>> all = {
      {"curve", "C[i, j] = gelu_erf(" + sum + ")"},
      {"wrong_curve", "C[i, j] = gelu_tanh(" + sum + ")"},
      {"gate", "C[i, j] = sigmoid(" + sum + ")"},
      {"relu", "C[i, j] = " + sum},
  };
  for (const auto& [function, means] : all) {
    const Answer a = gemm({{"epilogue", function}}, means);
    EXPECT_EQ(a.verdict, Verdict::different) << function << ": " << to_text(a);
  }
}

TEST(KernelEquivalence, Attention) {
  std::vector<Constants> all = {{}, {{"CAUSAL", 1}, {"GROUPS", 2}}, {{"CAP", cap}, {"LEFT", 20}}};
  if (thorough())
    all.insert(all.end(), {{{"GROUPS", 3}, {"D", 64}, {"KEYS", 32}, {"STRIDED", 1}},
                           {{"CAUSAL", 1}, {"LEFT", 20}, {"Q_SLOTS", 1}},
                           {{"RIGHT", 5}, {"LEFT", 7}, {"SCALE", std::string("0.0625")}}});
  for (const Constants& c : all) {
    const Answer a = attention(attention_text(), c);
    EXPECT_EQ(a.verdict, Verdict::equal) << to_text(a);
    EXPECT_LT(a.error, 1e-6);
  }
}

struct Edit {
  const char* what;
  const char* from;
  const char* to;
};

constexpr Edit edits[] = {
    {"sums keep the old factor", "sums *= factor", "sums *= 1.0"},
    {"the total keeps the old factor", "total[:] = total * factor + lane_sum",
     "total[:] = total + lane_sum"},
    {"the factor is of the exchanged maxima", "exp2_flushed(before * (scale * LOG2_E) - shift)",
     "exp2_flushed(shift - before * (scale * LOG2_E))"},
    {"powers of another base", "exp2_flushed(scores * (scale * LOG2_E) - shift)",
     "exp2_flushed(scores * scale - shift)"},
    {"a step's products are left out", "wgmma(powers, v[steps.last].T, sums)",
     "wgmma(powers, v[steps.last].T, sums, start=True)"},
    {"hidden scores are 0", "scores[:] = where(hidden, -inf, scores)",
     "scores[:] = where(hidden, 0.0, scores)"},
    {"the mask hides one key more", "min(TK, query + TK - TQ + (1 + right))",
     "min(TK, query + TK - TQ + right)"},
    {"the scale is left out", "scale = SCALE if SCALE > 0 else D**-0.5", "scale = 1.0"},
    {"blocks of keys are taken twice", "keys = part(key_blocks - 1 - step.index, KEYS)",
     "keys = part((key_blocks - 1 - step.index) // 2, KEYS)"},
    {"the result is not divided", "result[:] = sums * share", "result[:] = sums"},
    {"the greatest score is another row's in the shift", "most * (scale * LOG2_E)",
     "before * (scale * LOG2_E)"},
};

TEST(KernelEquivalence, WrongAttention) {
  for (int which = 0; const Edit& e : edits) {
    if (!thorough() && which++ % 2 != 0) continue;
    const Answer a = attention(edited_attention(e.from, e.to), {{"CAUSAL", 1}, {"KEYS", 16}}, 6);
    EXPECT_EQ(a.verdict, Verdict::different) << e.what << ": " << to_text(a);
  }
}

/// Any value may be taken off, and cancels: here the greatest of the last block alone. That it is
/// no greatest of all is for `dominance` to say.
TEST(KernelEquivalence, TheGreatestScoreCancels) {
  const std::string text = edited_attention("most[:] = max(most, amax(scores, axis=1))",
                                            "most[:] = amax(scores, axis=1)");
  const Answer a = attention(text, {{"CAUSAL", 0}});
  EXPECT_EQ(a.verdict, Verdict::equal) << to_text(a);
  const check::Report r = attention_report(text, {{"CAUSAL", 0}, {"KEYS", 16}, {"GROUPS", 1}});
  EXPECT_EQ(r.find("dominance")->verdict, check::Verdict::refuted) << to_text(r);
}

}  // namespace
}  // namespace tessera::proofs
