// Loads of a mask tensor into registers: which element is which row's and which key's.
#include "check/attend_loads.h"
#include "check/attend_walk.h"
#include "check/bounds.h"
#include "check/footprint.h"
#include "core/walk.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
const AttendWalk::MaskLoad* AttendWalk::mask_load(const core::Op& op) {
  if (const auto known = mask_loads_.find(&op); known != mask_loads_.end()) return &known->second;
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<core::GlobalAt>(issue, "from");
  const core::Tensor& tensor = kernel_[at->tensor];
  MaskLoad out;
  out.elements = arch::value_of(issue.form->effects.accesses[0].bytes, issue.choices).value_or(0) /
                 size_of(tensor.element);
  for (std::size_t d = 0; d < tensor.strides.size(); ++d)
    if (tensor.strides[d]->facts.constant() == 1) out.contiguous = static_cast<int>(d);
  const auto* to = argument<core::Slice>(issue, "to");
  if (to == nullptr || kernel_[to->registers].element != tensor.element || out.elements < 1 ||
      (out.elements > 1 && out.contiguous < 0)) {
    give_up("a load of the mask that is not followed");
    return nullptr;
  }
  if (!offsets_of(op, *at, out) || !only_bounds(issue, *at)) return nullptr;
  return &mask_loads_.emplace(&op, std::move(out)).first->second;
}

/// Each index less that which the meaning has for the tile's first query and the turn's first key.
bool AttendWalk::offsets_of(const core::Op& op, const core::GlobalAt& at, MaskLoad& out) {
  const auto expected = [&](const syntax::Expr& e, int64_t row, int64_t key) {
    Names names = products_.names();
    names.emplace(means_.row, products_.row_corner + row);
    names.emplace(means_.key, products_.key_corner + key);
    return term_of(kernel_, e, names);
  };
  for (std::size_t d = 0; d < at.at.size(); ++d) {
    const syntax::Expr& e = means_.mask->at[d];
    const Term first = expected(e, 0, 0);
    const auto by_row = value_of(term::simplify(expected(e, 1, 0) - first), {}),
               by_key = value_of(term::simplify(expected(e, 0, 1) - first), {});
    if (!by_row || !by_key || *by_row < 0 || *by_key < 0 || *by_row + *by_key > 1)
      return give_up("an index of the mask is more than a row or a key");
    out.along.push_back(*by_row == 1   ? MaskLoad::Along::row
                        : *by_key == 1 ? MaskLoad::Along::key
                                       : MaskLoad::Along::neither);
    out.offsets.push_back(term::simplify(at.at[d] - first));
    value_of_symbol(kernel_.at.lane) = 0;
    const bool is_known = eval(out.offsets.back()).has_value();
    value_of_symbol(kernel_.at.lane) = -1;
    if (is_known) continue;
    if (varies(out.offsets.back()))
      return give_up("the mask is loaded at another place from turn to turn");
    failed_ = true;
    return products_.is_zero(out.offsets.back(), {&op, products_.role, {}, {}, {}, 0}, "mask",
                             "the mask is taken at another index than the meaning has for the tile",
                             fmt::format("`{}`", to_string(term::simplify(first))),
                             "load the mask of the batch, the head, the queries and the keys whose "
                             "scores it is for");
  }
  return true;
}

/// Nothing but bounds of the tensor leaves an element of the mask out.
bool AttendWalk::only_bounds(const core::Issue& issue, const core::GlobalAt& at) {
  const auto* inside = argument<core::Integers>(issue, "inside");
  if (inside == nullptr) return true;
  for (Term c : conditions_of(inside->values[0]))
    if (!bounds_an_index(kernel_, at, c))
      return give_up(fmt::format("a load of the mask depends on `{}`", to_string(c)));
  return true;
}

void AttendWalk::load(const core::Op& op, int warp) {
  const auto& issue = *op.as<core::Issue>();
  const auto* at = argument<core::GlobalAt>(issue, "from");
  if (at == nullptr || !means_.mask || at->tensor != means_.mask->tensor)
    return forget(issue, warp);
  if (behind_) return give_up("the mask is loaded behind the loop over keys"), void();
  const MaskLoad* load = mask_load(op);
  if (load == nullptr) return;
  const auto* to = argument<core::Slice>(issue, "to");
  const int64_t first = eval(to->first).value_or(-1);
  int64_t& lane = value_of_symbol(kernel_.at.lane);
  for (lane = 0; lane < lanes; ++lane)
    for (int64_t e = 0; e < load->elements; ++e) {
      int row = -1, column = -1;
      for (std::size_t d = 0; d < load->offsets.size(); ++d) {
        const int64_t off =
            eval(load->offsets[d]).value_or(-1) + (static_cast<int>(d) == load->contiguous ? e : 0);
        if (off < 0) return give_up("the mask is loaded ahead of the tile's rows or keys"), void();
        if (load->along[d] == MaskLoad::Along::row) row = static_cast<int>(off);
        if (load->along[d] == MaskLoad::Along::key) column = static_cast<int>(off);
        if (load->along[d] == MaskLoad::Along::neither && off != 0)
          online_.fault = {"mask", "the mask is taken at another index than the meaning has",
                           "index 0", fmt::format("index {} of dimension {}", off, d),
                           "load the one row that all queries have"};
      }
      slot(warp, static_cast<int>(lane), to->registers, first + e) = {
          online_.element(row, turn_, column), -1, 0};
    }
  lane = -1;
}

}  // namespace tessera::check
