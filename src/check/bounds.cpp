#include "check/bounds.h"

#include <algorithm>
#include <fmt/format.h>

namespace tessera::check {

term::Term stays_inside(const core::Kernel& kernel, const Reach& r) {
  const core::Tensor& tensor = kernel[r.at->tensor];
  term::Term all = kernel.pool->truth(true);
  for (std::size_t d = 0; d < r.at->at.size(); ++d) {
    const term::Term index = r.at->at[d];
    const int64_t last = static_cast<int>(d) == r.along ? r.count - 1 : 0;
    all = term::logical_and(all, term::less_equal(kernel.pool->constant(0), index));
    all = term::logical_and(all, term::less(index + last, tensor.extents[d]));
  }
  return all;
}

std::optional<term::Term> unproved_bound(const core::Kernel& kernel, const Reach& r) {
  using term::Term;
  const core::Tensor& tensor = kernel[r.at->tensor];
  const auto holds = [](Term claim) { return term::always(claim, effort_of_a_bound).proved(); };
  for (std::size_t d = 0; d < r.at->at.size(); ++d) {
    const Term index = r.at->at[d], extent = tensor.extents[d];
    const Term from_zero = term::less_equal(kernel.pool->constant(0), index);
    if (!index->facts.at_least(0) && !holds(from_zero)) return from_zero;
    const int64_t last = static_cast<int>(d) == r.along ? r.count - 1 : 0;
    const bool whole =
        last == 0 || (index->facts.multiple_of(r.count) && extent->facts.multiple_of(r.count));
    if (r.bounded[d] && whole) continue;
    Term claim = term::less(index + last, extent);
    if (r.bounded[d]) claim = term::logical_or(term::logical_not(term::less(index, extent)), claim);
    if (!holds(claim)) return claim;
  }
  return std::nullopt;
}

namespace {

Reach reach_of(const core::Kernel& kernel, const core::Issue& issue, const core::GlobalAt& at) {
  const core::Tensor& tensor = kernel[at.tensor];
  const int64_t bytes =
      arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0);
  Reach r{&at, std::max<int64_t>(bytes / size_of(tensor.element), 1), -1,
          std::vector<bool>(at.at.size(), false)};
  for (std::size_t d = 0; d < tensor.strides.size(); ++d)
    if (tensor.strides[d]->facts.constant() == 1) r.along = static_cast<int>(d);
  const auto* inside = argument<core::Integers>(issue, "inside");
  for (term::Term c :
       inside == nullptr ? std::vector<term::Term>() : conditions_of(inside->values[0]))
    for (std::size_t d = 0; d < at.at.size() && c->op == term::Op::less; ++d)
      if (same(c->args[0], at.at[d]) && same(c->args[1], tensor.extents[d])) r.bounded[d] = true;
  return r;
}

}  // namespace

std::string open_bound(const core::Kernel& kernel, const std::vector<Place>& all,
                       const std::set<const core::Op*>& followed) {
  for (const Place& p : all) {
    if (followed.contains(p.op) || p.op->as<core::Issue>() == nullptr) continue;
    const core::Issue& issue = p.issue();
    for (const core::Argument& argument : issue.arguments) {
      const auto* at = std::get_if<core::GlobalAt>(&argument);
      if (at == nullptr || issue.form->effects.accesses.empty()) continue;
      if (const auto open = unproved_bound(kernel, reach_of(kernel, issue, *at)))
        return fmt::format("it is not known that `{}`, where `{}` takes `{}`", to_string(*open),
                           issue.form->name, kernel[at->tensor].name);
    }
  }
  return "";
}

}  // namespace tessera::check
