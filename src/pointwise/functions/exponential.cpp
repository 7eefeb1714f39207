// Exponentials, logarithms and the functions of a circle. Values follow PyTorch, also for
// infinities and NaN.
#include <cmath>
#include <cstring>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

using Args = std::span<const double>;

double round_tf32(Args a) {
  auto f = static_cast<float>(a[0]);
  if (!std::isfinite(f)) return f;
  uint32_t b = 0;
  std::memcpy(&b, &f, 4);
  b = (b + 0x1000U) & ~0x1fffU;
  std::memcpy(&f, &b, 4);
  return f;
}

constexpr Function functions[] = {
    {"exp", 1, [](Args a) { return std::exp(a[0]); }, "tsr_exp({0})", "aten.exp"},
    {"exp2", 1, [](Args a) { return std::exp2(a[0]); }, "tsr_exp2({0})", "aten.exp2"},
    // To 10 bits after the leading one, ties away from zero: an operand of a tf32 product.
    {"round_tf32", 1, round_tf32, "tsr_round_tf32({0})"},
    // The same in two instructions. Of what is no number another bit pattern may come, and x less
    // it is NaN all the same.
    {"round_tf32_finite", 1, round_tf32, "tsr_round_tf32_finite({0})"},
    // Results below 2^-126 are 0, and on a GPU it is one instruction: for softmax.
    {"exp2_flushed", 1,
     [](Args a) {
       const double y = std::exp2(a[0]);
       return y < 0x1p-126 ? 0.0 : y;
     },
     "tsr_exp2_flushed({0})"},
    // On a GPU one instruction, with a relative error of 2^-11 at most: for scores that are capped.
    // `approximated` has its CUDA text.
    {"tanh_approx", 1, [](Args a) { return std::tanh(a[0]); }, "tsr_tanh_approx({0})"},
    {"expm1", 1, [](Args a) { return std::expm1(a[0]); }, "tsr_expm1({0})", "aten.expm1"},
    {"log", 1, [](Args a) { return std::log(a[0]); }, "tsr_log({0})", "aten.log"},
    {"log2", 1, [](Args a) { return std::log2(a[0]); }, "tsr_log2({0})", "aten.log2"},
    {"log10", 1, [](Args a) { return std::log10(a[0]); }, "tsr_log10({0})", "aten.log10"},
    {"log1p", 1, [](Args a) { return std::log1p(a[0]); }, "tsr_log1p({0})", "aten.log1p"},
    {"erf", 1, [](Args a) { return std::erf(a[0]); }, "tsr_erf({0})", "aten.erf"},
    {"sin", 1, [](Args a) { return std::sin(a[0]); }, "tsr_sin({0})", "aten.sin"},
    {"cos", 1, [](Args a) { return std::cos(a[0]); }, "tsr_cos({0})", "aten.cos"},
    {"tan", 1, [](Args a) { return std::tan(a[0]); }, "tsr_tan({0})", "aten.tan"},
    {"atan", 1, [](Args a) { return std::atan(a[0]); }, "tsr_atan({0})", "aten.atan"},
};

}  // namespace

extern const Family exponential{functions};

}  // namespace tessera::pointwise::families
