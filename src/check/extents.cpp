#include "check/extents.h"

#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using core::Term;

class Fit {
 public:
  Fit(const core::Kernel& kernel, const Means& means)
      : kernel_(kernel), to_(means.outputs.front().to) {}

  /// Whether the tensor has all of these elements; with `exactly` it has to have no others.
  [[nodiscard]] bool has(const ElementAt& e, bool exactly) const {
    for (std::size_t d = 0; d < e.at.size(); ++d) {
      if (e.at[d].axis == Axis::k) continue;  // of a sum of elements: its loop is held to it
      const Term extent = kernel_[e.tensor].extents[d], needed = extent_of(e.at[d]);
      if (!needed) return false;
      if (term::simplify(needed) == term::simplify(extent)) continue;
      if (exactly || !term::always(term::less_equal(needed, extent)).proved()) return false;
    }
    return true;
  }

 private:
  /// So many elements are asked for along a dimension.
  [[nodiscard]] Term extent_of(const Index& i) const {
    if (i.axis == Axis::number) return kernel_.pool->constant(i.number + 1);
    if (i.modulus > 0) return kernel_.pool->constant(i.modulus);
    const int of = to_.place(i.axis);
    if (of < 0) return {};
    const Term whole = kernel_[to_.tensor].extents[static_cast<std::size_t>(of)];
    return i.number == 0 ? whole : whole + i.number;
  }

  const core::Kernel& kernel_;
  const ElementAt& to_;
};

}  // namespace

std::string misfit(const core::Kernel& kernel, const Means& means) {
  const Fit fit(kernel, means);
  const auto other = [&](const ElementAt& e) {
    return fmt::format("`{}` has other extents than its place in the meaning",
                       kernel[e.tensor].name);
  };
  for (const Output& o : means.outputs) {
    if (!fit.has(o.to, true)) return other(o.to);
    for (const Case& p : o.cases)
      for (const Read& r : p.reads)
        if (r.factor < 0 && !fit.has(r.element, false)) return other(r.element);
  }
  if (!means.multiplies() && !fit.has(means.a, true)) return other(means.a);
  return "";
}

}  // namespace tessera::check
