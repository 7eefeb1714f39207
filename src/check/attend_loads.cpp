#include "check/attend_loads.h"

#include <algorithm>

#include "check/bounds.h"
#include "check/launch.h"

namespace tessera::check {
namespace {

class Loads {
 public:
  Loads(const core::Kernel& kernel, AttendProducts& products)
      : kernel_(kernel), products_(products) {}

  void judge(const Place& p) {
    const core::Issue& issue = p.issue();
    for (const arch::Access& a : issue.form->effects.accesses) {
      const auto* at = argument<core::GlobalAt>(issue, a.operand);
      if (at == nullptr || a.action != arch::Action::read) continue;
      const core::Tensor& tensor = kernel_[at->tensor];
      const int64_t size = size_of(tensor.element),
                    bytes = arch::value_of(a.bytes, issue.choices).value_or(-1);
      if (bytes < size || bytes % size != 0)
        give_up(fmt::format("it is not known how much `{}` reads of `{}`", issue.form->name,
                            tensor.name));
      else
        stays_inside(p, *at, bytes / size);
    }
  }

 private:
  void give_up(std::string why) { products_.give_up("placement", std::move(why)); }

  void stays_inside(const Place& p, const core::GlobalAt& at, int64_t elements) {
    const core::Tensor& tensor = kernel_[at.tensor];
    const auto* inside = argument<core::Integers>(p.issue(), "inside");
    const std::vector<Term> conditions =
        inside == nullptr ? std::vector<Term>() : conditions_of(inside->values[0]);
    for (std::size_t d = 0; d < at.at.size(); ++d) {
      const bool contiguous = tensor.strides[d]->facts.constant() == 1;
      const int64_t last = contiguous ? elements - 1 : 0;
      const Term index = at.at[d], extent = tensor.extents[d];
      if (!from_zero(index))
        return leaves(p, conditions, tensor, term::less_equal(kernel_.pool->constant(0), index));
      const bool bounded = std::any_of(conditions.begin(), conditions.end(), [&](Term c) {
        return c->op == term::Op::less && same(c->args[0], index) && same(c->args[1], extent);
      });
      const bool whole =
          last == 0 || (index->facts.multiple_of(elements) && extent->facts.multiple_of(elements));
      if (bounded && whole) continue;
      const Term claim = term::less(index + last, extent);
      if (!term::always(claim).proved()) return leaves(p, conditions, tensor, claim);
    }
  }

  /// The claim does not hold, or is not known to. It is asked for lane 0 of warp 0.
  void leaves(const Place& p, const std::vector<Term>& conditions, const core::Tensor& tensor,
              Term claim) {
    const bool always_done = conditions.empty() && p.branches.empty() && p.role != nullptr;
    if (const auto found = always_done ? fails(kernel_, p.loops, claim) : std::nullopt)
      products_.refute("placement", p.op, p.role->first_warp,
                       fmt::format("a load leaves the tensor `{}`", tensor.name),
                       fmt::format("`{}`", to_string(claim)), "not at " + *found,
                       "let the load happen where its elements lie in the tensor, and there alone");
    else
      give_up(fmt::format("it is not known that `{}`, where `{}` is loaded", to_string(claim),
                          tensor.name));
  }

  /// The index is at least 0: as it is, or from where a block of keys, or a tile of the output,
  /// begins. That tiles are those of the output is asked as output_once.
  [[nodiscard]] bool from_zero(Term index) const {
    if (index->facts.at_least(0)) return true;
    std::vector<Term> begins = products_.batches;
    begins.insert(begins.end(), {products_.row_corner, products_.key_corner});
    const bool behind = std::any_of(begins.begin(), begins.end(), [&](Term t) {
      return t && term::simplify(index - t)->facts.at_least(0);
    });
    return behind ||
           term::always(term::less_equal(kernel_.pool->constant(0), index), effort_of_a_bound)
               .proved();
  }

  const core::Kernel& kernel_;
  AttendProducts& products_;
};

}  // namespace

bool bounds_an_index(const core::Kernel& kernel, const core::GlobalAt& at, Term condition) {
  if (condition->op != term::Op::less) return false;
  for (std::size_t d = 0; d < at.at.size(); ++d)
    if (same(condition->args[0], at.at[d]) &&
        same(condition->args[1], kernel[at.tensor].extents[d]))
      return true;
  return false;
}

void loads_stay_inside(const core::Kernel& kernel, AttendProducts& products) {
  Loads loads(kernel, products);
  for (const Place& p : products.places())
    if (p.op->as<core::Issue>() != nullptr) loads.judge(p);
}

}  // namespace tessera::check
