// Sums of elements: a loop that adds elements of a tensor to registers, so many in each turn.
//
// One turn is walked, for all turns at once: registers begin it with a value of their own, and the
// index of the sum is counted from the turn's first element. Where a turn leaves what was there
// plus each element of the turn once, the registers have got the whole sum behind the loop.
#include <algorithm>

#include "check/tile.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::check {

/// Where an op of the role loads elements of the sum; nullptr for other ops.
const core::GlobalAt* Tile::loaded(const Place& p) const {
  if (p.role != role_.role || p.op->as<core::Issue>() == nullptr ||
      !p.issue().form->name.starts_with("load"))
    return nullptr;
  const auto* at = argument<core::GlobalAt>(p.issue(), "from");
  return at != nullptr && at->tensor == means_.a.tensor ? at : nullptr;
}

/// The tile's corner is what the first lane of the first warp loads first.
void Tile::corners_of_elements() {
  if (sums_ == nullptr) {
    why = "the sum's loop does not stand in a loop over tiles";
    return;
  }
  const auto corner = [&](Axis axis) {
    return first_index(product_, *loaded(product_), means_.a.place(axis));
  };
  bases_[row_base] = corner(Axis::row);
  bases_[column_base] = corner(Axis::column);
  for (const term::Part& part : term::sum_of(corner(Axis::k)).parts)
    if (part.atom == sums_->counter) per_turn_ = part.coefficient;
  if (per_turn_ < 1) {
    why = "the elements of a sum are not counted by the turns of its loop";
    return;
  }
  sum_base_ = static_cast<int>(bases_.size());
  bases_.push_back(term::simplify(sums_->counter * per_turn_));
  for (const auto& [op, p] : places_)
    if (const core::GlobalAt* at = loaded(*p); at != nullptr && !stopped())
      extend(*p, *at, means_.a);
}

/// That of the first lane of the first warp, in the first turns of unrolled loops.
Term Tile::first_index(const Place& access, const core::GlobalAt& at, int dimension) {
  Known first = {{kernel_.at.lane.node(), 0}, {role_.warp.node(), 0}};
  for (const core::For* f : access.unrolled) first[f->counter.node()] = f->lower->value;
  return term::simplify(with_values(at.at[static_cast<std::size_t>(dimension)], first));
}

/// The tile has the elements that are loaded, or stored.
void Tile::extend(const Place& access, const core::GlobalAt& at, const ElementAt& element) {
  const std::vector<Known> turns = turns_of(access.unrolled);
  for (const Axis axis : {Axis::row, Axis::column}) {
    const Term base = bases_[base_of(axis)];
    const auto d = static_cast<std::size_t>(element.place(axis));
    const Term off = term::simplify(at.at[d] - base);
    if (!known_at(access, off)) {
      why = fmt::format("`{}` is not counted from the tile's corner", to_string(off));
      return;
    }
    const bool along = kernel_[at.tensor].strides[d]->facts.constant() == 1;
    const int64_t bytes =
        arch::value_of(access.issue().form->effects.accesses[0].bytes, access.issue().choices)
            .value_or(0);
    const int64_t more = along ? bytes / size_of(kernel_[at.tensor].element) : 1;
    int64_t& extent = axis == Axis::row ? rows_ : columns_;
    for (const Known& turn : turns)
      for (int warp = 0; warp < role_.warps; ++warp)
        for (int lane = 0; lane < Elements::lanes; ++lane) {
          for (const auto& [node, value] : turn)
            values_[static_cast<std::size_t>(node->symbol->index)] = value;
          value_of_symbol(role_.warp) = warp;
          value_of_symbol(kernel_.at.lane) = lane;
          extent = std::max(extent, eval(off) + more);
        }
    for (const auto& [node, value] : turns.front())
      values_[static_cast<std::size_t>(node->symbol->index)] = -1;
    value_of_symbol(role_.warp) = -1;
    value_of_symbol(kernel_.at.lane) = -1;
  }
}

std::set<core::RegistersId> Tile::written_in_sums() const {
  std::set<core::RegistersId> out;
  for (const auto& [op, p] : places_) {
    if (p->loops.empty() || p->loops.back() != sums_ || p->role != role_.role) continue;
    if (const auto* c = op->as<core::Compute>())
      for (const core::Run& r : c->results) out.insert(r.registers);
    if (op->as<core::Issue>() == nullptr) continue;
    const core::Issue& issue = p->issue();
    for (std::size_t i = 0; i < issue.arguments.size(); ++i)
      if (const auto* slice = std::get_if<core::Slice>(&issue.arguments[i]);
          slice != nullptr && issue.form->operands[i].direction != arch::Direction::in)
        out.insert(slice->registers);
  }
  return out;
}

Tile::Id Tile::before(core::RegistersId registers, int64_t slot) {
  Elements e{Elements::of_before, {absolute, absolute}, {}};
  e.at.assign(Elements::lanes, registers.index);
  e.at.resize(std::size_t{2} * Elements::lanes, slot);
  return formulas_.elements(std::move(e));
}

/// What registers have behind the loop that began it with `from`, a turn with `start`, and left a
/// turn with `now`.
Tile::Id Tile::added_up(int warp, Id now, Id start, Id from) {
  const std::vector<Id> leaves = formulas_.leaves(now);
  const auto first = std::find_if(leaves.begin(), leaves.end(), [&](Id x) {
    return formulas_.elements_of(x).tensor == means_.a.tensor.index;
  });
  if (first == leaves.end()) return Formulas::none;
  Elements e = formulas_.elements_of(*first);
  const auto k = static_cast<std::size_t>(means_.a.place(Axis::k));
  Elements sum{Elements::of_sum, {row_base, column_base}, {}};
  for (std::size_t d = 0; d < e.bases.size(); ++d) {
    const Axis axis = means_.a.at[d].axis;
    const int base = axis == Axis::k ? sum_base_ : base_of(axis);
    if (e.bases[d] != base) {
      why = "the elements of a sum are not counted from the tile's corner";
      return Formulas::none;
    }
  }
  for (const Axis axis : {Axis::row, Axis::column}) {
    const auto d = static_cast<std::ptrdiff_t>(means_.a.place(axis)) * Elements::lanes;
    sum.at.insert(sum.at.end(), e.at.begin() + d, e.at.begin() + d + Elements::lanes);
  }
  const pointwise::Function& plus = *pointwise::find("add");
  Id wanted = start;
  for (int64_t u = 0; u < per_turn_; ++u) {
    std::fill_n(e.at.begin() + static_cast<std::ptrdiff_t>(k * Elements::lanes), Elements::lanes,
                u);
    wanted = formulas_.call(plus, {wanted, formulas_.elements(e)});
  }
  if (now == wanted) return formulas_.call(plus, {from, formulas_.elements(std::move(sum))});
  for (int lane = 0; lane < Elements::lanes; ++lane) {
    if (!formulas_.differ(now, wanted, lane)) continue;
    refute(*product_.op, warp, fmt::format("lane {}", lane),
           "a turn does not add each of its elements once", text(wanted, lane, Formulas::none),
           text(now, lane, Formulas::none), "add each element that belongs to the turn, once");
    violations.back().kind = "reduction";
    return Formulas::none;
  }
  why = "it is not known what a turn adds up";
  return Formulas::none;
}

void Tile::elements(const std::vector<int>& warps) {
  if (static_cast<int>(warps.size()) != role_.warps) {
    why = "elements are added under a condition on the warp";
    return;
  }
  multiplied_ = true;
  const std::set<core::RegistersId> written = written_in_sums();
  const auto slots_of = [&](int w, core::RegistersId id) -> std::vector<Id>& {
    return registers_[static_cast<std::size_t>(w)][static_cast<std::size_t>(id.index)];
  };
  const auto from = registers_;
  for (int w : warps)
    for (core::RegistersId id : written)
      for (std::size_t s = 0; s < slots_of(w, id).size(); ++s)
        if (Id& value = slots_of(w, id)[s]; value != Formulas::none)
          value = before(id, static_cast<int64_t>(s));
  adding_ = true;
  body(sums_->body, warps);
  adding_ = false;
  for (int w : warps)
    for (core::RegistersId id : written)
      for (std::size_t s = 0; s < slots_of(w, id).size() && !stopped(); ++s) {
        const auto& old = from[static_cast<std::size_t>(w)][static_cast<std::size_t>(id.index)];
        const Id began = s < old.size() ? old[s] : Formulas::none;
        Id& value = slots_of(w, id)[s];
        const Id start = began == Formulas::none ? began : before(id, static_cast<int64_t>(s));
        const std::vector<Id> leaves = formulas_.leaves(value);
        if (start == Formulas::none ||
            std::find(leaves.begin(), leaves.end(), start) == leaves.end())
          value = Formulas::none;  // of the last turn alone
        else
          value = value == start ? began : added_up(w, value, start, began);
      }
}

}  // namespace tessera::check
