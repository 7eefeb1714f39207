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
      // Of a sum of elements the loop is held to k, and a free index to the tensor.
      if (e.at[d].axis == Axis::k || e.at[d].axis == Axis::free) continue;
      const Term extent = kernel_[e.tensor].extents[d], needed = extent_of(e.at[d]);
      if (!needed) return false;
      if (term::simplify(needed) == term::simplify(extent)) continue;
      if (exactly || !term::always(term::less_equal(needed, extent)).proved()) return false;
    }
    return true;
  }

  /// Whether both have the same extents of k.
  [[nodiscard]] bool sums_alike(const ElementAt& x, const ElementAt& y) const {
    const auto extent = [&](const ElementAt& e) {
      const int d = e.place(Axis::k);
      return d < 0 ? Term()
                   : term::simplify(kernel_[e.tensor].extents[static_cast<std::size_t>(d)]);
    };
    return extent(x) && extent(x) == extent(y);
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

std::string other_extents(const core::Kernel& kernel, const ElementAt& e) {
  return fmt::format("`{}` has other extents than its place in the meaning", kernel[e.tensor].name);
}

}  // namespace

std::string misfit(const core::Kernel& kernel, const Means& means) {
  const Fit fit(kernel, means);
  const auto other = [&](const ElementAt& e) { return other_extents(kernel, e); };
  for (const Output& o : means.outputs) {
    if (!fit.has(o.to, true)) return other(o.to);
    for (const Case& p : o.cases)
      for (const Read& r : p.reads)
        if (r.factor < 0 && !fit.has(r.element, false)) return other(r.element);
  }
  if (means.sums() && !means.multiplies() && !fit.has(means.a, true)) return other(means.a);
  return "";
}

std::string misfit_of_factors(const core::Kernel& kernel, const Means& means) {
  const Fit fit(kernel, means);
  std::vector<const ElementAt*> factors = {&means.a};
  for (const ElementAt& b : means.b) factors.push_back(&b);
  for (const ElementAt* f : factors)
    if (!fit.has(*f, false) || !fit.sums_alike(*f, means.a)) return other_extents(kernel, *f);
  return "";
}

}  // namespace tessera::check
