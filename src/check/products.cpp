#include "check/products.h"

#include "check/footprint.h"
#include "term/rules.h"

namespace tessera::check {

std::string add_product(const Place& p, std::vector<std::vector<Products>>& roles) {
  if (roles.empty() || roles.back().front().front().role != p.role) roles.emplace_back();
  std::vector<Products>& role = roles.back();
  const auto* d = argument<core::Slice>(p.issue(), "d");
  for (Products& others : role) {
    const auto* e = argument<core::Slice>(others.front().issue(), "d");
    if (e->registers != d->registers) continue;
    if (e->first != d->first) return "products have different parts of registers as accumulators";
    others.push_back(p);
    return "";
  }
  if (!role.empty() && (role.front().front().loops != p.loops ||
                        wgmma_of(role.front().front().issue())->n != wgmma_of(p.issue())->n))
    return "accumulators of a role have different loops, or widths";
  role.push_back({p});
  return "";
}

bool same_corner(const Operand& x, const Operand& y) {
  const auto batch = [](const Operand& o) { return o.batch ? term::simplify(o.batch) : Term(); };
  return term::simplify(x.row_corner) == term::simplify(y.row_corner) && batch(x) == batch(y);
}

}  // namespace tessera::check
