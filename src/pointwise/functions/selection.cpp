// Comparison and selection; truth values are 1 and 0. Values follow PyTorch, also for infinities
// and NaN.
#include <algorithm>
#include <cmath>

#include "pointwise/pointwise.h"

namespace tessera::pointwise::families {
namespace {

using Args = std::span<const double>;

bool either_nan(Args a) {
  return std::isnan(a[0]) || std::isnan(a[1]);
}

constexpr Function functions[] = {
    {"minimum", 2, [](Args a) { return either_nan(a) ? NAN : std::min(a[0], a[1]); },
     "tsr_minimum({0}, {1})", "aten.minimum"},
    {"maximum", 2, [](Args a) { return either_nan(a) ? NAN : std::max(a[0], a[1]); },
     "tsr_maximum({0}, {1})", "aten.maximum"},
    {"where", 3, [](Args a) { return a[0] != 0 ? a[1] : a[2]; }, "({0} != 0.0f ? {1} : {2})"},
    {"eq", 2, [](Args a) { return a[0] == a[1] ? 1.0 : 0.0; }, "({0} == {1} ? 1.0f : 0.0f)",
     "aten.eq"},
    {"ne", 2, [](Args a) { return a[0] != a[1] ? 1.0 : 0.0; }, "({0} != {1} ? 1.0f : 0.0f)",
     "aten.ne"},
    {"lt", 2, [](Args a) { return a[0] < a[1] ? 1.0 : 0.0; }, "({0} < {1} ? 1.0f : 0.0f)",
     "aten.lt"},
    {"le", 2, [](Args a) { return a[0] <= a[1] ? 1.0 : 0.0; }, "({0} <= {1} ? 1.0f : 0.0f)",
     "aten.le"},
    {"gt", 2, [](Args a) { return a[0] > a[1] ? 1.0 : 0.0; }, "({0} > {1} ? 1.0f : 0.0f)",
     "aten.gt"},
    {"ge", 2, [](Args a) { return a[0] >= a[1] ? 1.0 : 0.0; }, "({0} >= {1} ? 1.0f : 0.0f)",
     "aten.ge"},
    {"logical_and", 2, [](Args a) { return a[0] != 0 && a[1] != 0 ? 1.0 : 0.0; },
     "tsr_and({0}, {1})", "aten.logical_and"},
    {"logical_or", 2, [](Args a) { return a[0] != 0 || a[1] != 0 ? 1.0 : 0.0; }, "tsr_or({0}, {1})",
     "aten.logical_or"},
    {"logical_xor", 2, [](Args a) { return (a[0] != 0) != (a[1] != 0) ? 1.0 : 0.0; },
     "tsr_xor({0}, {1})", "aten.logical_xor"},
    {"logical_not", 1, [](Args a) { return a[0] == 0 ? 1.0 : 0.0; }, "({0} == 0.0f ? 1.0f : 0.0f)",
     "aten.logical_not"},
    {"isnan", 1, [](Args a) { return std::isnan(a[0]) ? 1.0 : 0.0; }, "({0} != {0} ? 1.0f : 0.0f)",
     "aten.isnan"},
    {"isinf", 1, [](Args a) { return std::isinf(a[0]) ? 1.0 : 0.0; },
     "(tsr_abs({0}) == tsr_inf() ? 1.0f : 0.0f)", "aten.isinf"},
};

}  // namespace

extern const Family selection{functions};

}  // namespace tessera::pointwise::families
