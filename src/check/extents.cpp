#include "check/extents.h"

#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using term::Term;

/// `equal`: the extents are to be the same ones; else those of the element may be larger.
std::string misfit(const core::Kernel& kernel, const ElementAt& e, const ElementAt& to,
                   bool equal_alone) {
  for (std::size_t d = 0; d < e.at.size(); ++d) {
    if (e.at[d].axis == Axis::k) continue;
    const Term extent = kernel[e.tensor].extents[d];
    const int of = to.place(e.at[d].axis);
    const Term last = e.at[d].axis == Axis::number ? kernel.pool->constant(e.at[d].number + 1)
                      : of >= 0 ? kernel[to.tensor].extents[static_cast<std::size_t>(of)]
                                : Term();
    const bool equal = last && term::simplify(last) == term::simplify(extent);
    if (equal || (!equal_alone && last && term::always(term::less_equal(last, extent)).proved()))
      continue;
    return fmt::format("`{}` has other extents than its place in the meaning",
                       kernel[e.tensor].name);
  }
  return "";
}

}  // namespace

std::string misfit(const core::Kernel& kernel, const Means& means) {
  const ElementAt& to = means.outputs.front().to;
  for (const Output& o : means.outputs) {
    if (std::string why = misfit(kernel, o.to, to, true); !why.empty()) return why;
    for (const ElementAt& e : o.elements)
      if (std::string why = misfit(kernel, e, to, false); !why.empty()) return why;
  }
  return means.multiplies() ? "" : misfit(kernel, means.a, to, true);
}

}  // namespace tessera::check
