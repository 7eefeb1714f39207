// Loads of registers from global memory, and stores to it: an address a lane.
#include <algorithm>

#include "check/bounds.h"
#include "check/launch.h"
#include "check/tile.h"

namespace tessera::check {
/// Of lane, warp and counters of unrolled loops alone.
bool Tile::known_at(const Place& p, Term t) const {
  return !term::any_node(t, [&](Term n) {
    if (!n->leaf() || n->symbol == nullptr) return n->op == term::Op::read;
    return n != kernel_.at.lane && n != role_.warp &&
           std::none_of(p.unrolled.begin(), p.unrolled.end(),
                        [&](const core::For* f) { return f->counter == n; });
  });
}

const Tile::Global* Tile::global(const core::Op& op) {
  if (const auto known = globals_.find(&op); known != globals_.end()) return &known->second;
  const Place& p = *places_.at(&op);
  const bool loads = p.issue().form->name.starts_with("load");
  const auto* at = argument<core::GlobalAt>(p.issue(), loads ? "from" : "to");
  const auto* slice = argument<core::Slice>(p.issue(), loads ? "to" : "from");
  if (at == nullptr || slice == nullptr) return why = "what is stored is no register", nullptr;
  const core::Tensor& tensor = kernel_[at->tensor];
  Global g{at->tensor, slice->registers, slice->first};
  if (tensor.element != kernel_[slice->registers].element) {
    why = fmt::format("registers and `{}` have different element types", tensor.name);
    return nullptr;
  }
  g.elements =
      arch::value_of(p.issue().form->effects.accesses[0].bytes, p.issue().choices).value_or(0) /
      size_of(tensor.element);
  for (std::size_t d = 0; d < tensor.strides.size(); ++d)
    if (tensor.strides[d]->facts.constant() == 1) g.along = static_cast<int>(d);
  if (g.elements < 1 || (g.elements > 1 && g.along < 0)) {
    why = fmt::format("elements of `{}` do not lie side by side", tensor.name);
    return nullptr;
  }
  index_of(p, *at, g);
  std::vector<bool> bounded(at->at.size(), false);
  if (!conditions(p, *at, g, bounded) || !lies_inside(p, *at, g, bounded)) return nullptr;
  return &globals_.emplace(&op, std::move(g)).first->second;
}

/// Each index as a base and a term of what is known.
void Tile::index_of(const Place& p, const core::GlobalAt& at, Global& out) {
  for (Term t : at.at) {
    out.bases.push_back(-1);
    out.offsets.push_back(term::simplify(t));
    for (int b = absolute; b < static_cast<int>(bases_.size()) && out.bases.back() < 0; ++b) {
      const Term base = bases_[static_cast<std::size_t>(b)];
      if (!base) continue;
      const Term off = term::simplify(t - base);
      if (!known_at(p, off)) continue;
      out.bases.back() = b;
      out.offsets.back() = off;
    }
    if (out.bases.back() >= 0) continue;
    out.bases.back() = static_cast<int>(bases_.size());
    bases_.push_back(out.offsets.back());
    out.offsets.back() = kernel_.pool->constant(0);
  }
}

/// True where the claim, about what is done at `p`, holds for all launches; else a violation, or
/// why it is not known.
bool Tile::holds(const Place& p, Term claim, const std::string& message,
                 const std::string& expected) {
  if (term::always(claim, effort_of_a_bound).proved()) return true;
  const std::vector<Known> turns = turns_of(p.unrolled);
  for (const Known* turn : {&turns.back(), &turns.front()})
    for (int64_t lane : {31, 0}) {
      Known known = *turn;
      known[kernel_.at.lane.node()] = lane;
      known[role_.warp.node()] = role_.warps - 1;
      const auto found = fails(kernel_, loops(), claim, known);
      if (!found) continue;
      return refute(*p.op, role_.warps - 1, fmt::format("lane {}", lane), message, expected,
                    "not at " + *found,
                    "let the access happen where its elements lie in the tensor, and there alone");
    }
  why = fmt::format("it is not known that `{}`", to_string(claim));
  return false;
}

/// What the access is conditional on: bounds of the tensor, and what tells lanes apart.
bool Tile::conditions(const Place& p, const core::GlobalAt& at, Global& out,
                      std::vector<bool>& bounded) {
  const auto* inside = argument<core::Integers>(p.issue(), "inside");
  if (inside == nullptr) return true;
  const core::Tensor& tensor = kernel_[at.tensor];
  for (Term c : conditions_of(inside->values[0])) {
    bool is_bound = false;
    for (std::size_t d = 0; d < at.at.size() && c->op == term::Op::less; ++d)
      if (same(c->args[0], at.at[d]) && same(c->args[1], tensor.extents[d]))
        out.bounded = bounded[d] = is_bound = true;
    if (is_bound) continue;
    if (known_at(p, c)) {
      out.lanes.push_back(c);
      continue;
    }
    Term claim = c;
    for (std::size_t d = 0; d < at.at.size(); ++d)
      claim = term::logical_or(term::logical_not(term::less(at.at[d], tensor.extents[d])), claim);
    if (!holds(p, claim, fmt::format("an access leaves out an element of `{}`", tensor.name),
               fmt::format("`{}` wherever the element lies in the tensor", to_string(c))))
      return false;
  }
  return true;
}

/// The index of a tile's element that is no further than the tile: it is in the tensor where whole
/// tiles fill it, as the raster has no other tiles. The batch is one of the raster's.
bool Tile::is_inside(Term extent, int base, Term offset, int64_t last) {
  const ElementAt& to = means_.outputs.front().to;
  const Axis axis = base == row_base      ? Axis::row
                    : base == column_base ? Axis::column
                    : base == batch_base  ? Axis::batch
                                          : Axis::k;
  const int d = to.place(axis);
  const bool of_output =
      d >= 0 && same(extent, kernel_[to.tensor].extents[static_cast<std::size_t>(d)]);
  if (axis == Axis::batch) return of_output && last == 0 && check::value_of(offset, {}) == 0;
  const int64_t size = axis == Axis::row ? rows_ : columns_;
  // A cluster's tiles are taken together: the last may lie outside unless all of them fill it.
  return of_output && axis != Axis::k && extent->facts.multiple_of(size * kernel_.cluster) &&
         term::always(term::less(offset + last, kernel_.pool->constant(size)), effort_of_a_bound)
             .proved();
}

/// An index in words that are short: corners of tiles are long terms.
std::string Tile::from_base(int base, Term offset) const {
  static constexpr std::string_view names[] = {"", "row of the tile", "column of the tile",
                                               "batch of the tile"};
  if (base >= bases) return to_string(bases_[static_cast<std::size_t>(base)] + offset);
  std::string off = to_string(term::simplify(offset));
  if (base == absolute) return off;
  return std::string(names[base]) + (off == "0" ? "" : " + " + off);
}

bool Tile::lies_inside(const Place& p, const core::GlobalAt& at, const Global& g,
                       const std::vector<bool>& bounded) {
  const core::Tensor& tensor = kernel_[at.tensor];
  for (std::size_t d = 0; d < at.at.size(); ++d) {
    const int64_t last = static_cast<int>(d) == g.along ? g.elements - 1 : 0;
    const Term index = at.at[d], extent = tensor.extents[d];
    if (!index->facts.at_least(0) &&
        !holds(p, term::less_equal(kernel_.pool->constant(0), index),
               fmt::format("an access leaves the tensor `{}`", tensor.name),
               fmt::format("`0 <= {}`", from_base(g.bases[d], g.offsets[d]))))
      return false;
    if (!bounded[d] && is_inside(extent, g.bases[d], g.offsets[d], last)) continue;
    if (bounded[d] && last == 0) continue;
    if (bounded[d] && index->facts.multiple_of(g.elements) && extent->facts.multiple_of(g.elements))
      continue;
    Term claim = term::less(index + last, extent);
    if (bounded[d]) claim = term::logical_or(term::logical_not(term::less(index, extent)), claim);
    if (!holds(p, claim, fmt::format("an access leaves the tensor `{}`", tensor.name),
               fmt::format("`{} < {}`",
                           from_base(g.bases[d], last == 0 ? g.offsets[d] : g.offsets[d] + last),
                           to_string(extent))))
      return false;
  }
  return true;
}

/// The index of the first element, lane + 32 * dimension, and which lanes take part.
bool Tile::lanes_of(const Global& g, std::vector<int64_t>& at, std::vector<bool>& active) {
  at.assign(Elements::lanes * g.offsets.size(), 0);
  active.assign(Elements::lanes, true);
  int64_t& lane = value_of_symbol(kernel_.at.lane);
  for (std::size_t d = 0; d < g.offsets.size(); ++d) {
    const bool by_lane = term::any_node(g.offsets[d], [&](Term n) { return n == kernel_.at.lane; });
    for (lane = 0; lane < Elements::lanes; ++lane) {
      const std::size_t i = d * Elements::lanes + static_cast<std::size_t>(lane);
      at[i] = by_lane || lane == 0 ? eval(g.offsets[d]) : at[i - 1];
    }
  }
  for (Term c : g.lanes)
    for (lane = 0; lane < Elements::lanes; ++lane)
      if (eval(c) == 0) active[static_cast<std::size_t>(lane)] = false;
  lane = -1;
  return why.empty();
}

void Tile::load(const core::Op& op, int warp) {
  const Global* g = global(op);
  std::vector<int64_t> at;
  std::vector<bool> active;
  if (g == nullptr || !lanes_of(*g, at, active) || !may_write(g->registers)) return;
  if (kernel_[g->tensor].access != core::Access::input) {
    why = fmt::format("`{}` is read, which the kernel writes", kernel_[g->tensor].name);
    return;
  }
  if (std::find(active.begin(), active.end(), false) != active.end()) {
    why = "a load leaves out lanes";
    return;
  }
  const int64_t first = eval(g->first);
  for (int64_t e = 0; e < g->elements; ++e) {
    if (adding_ && g->bounded && slot(warp, g->registers, first + e) != formulas_.number(0))
      why = "what lies outside of a tensor is not known to add zero";
    slot(warp, g->registers, first + e) = formulas_.elements({g->tensor.index, g->bases, at});
    if (g->along < 0) continue;
    const auto along = static_cast<std::size_t>(g->along) * Elements::lanes;
    for (std::size_t lane = 0; lane < Elements::lanes; ++lane) ++at[along + lane];
  }
}

void Tile::store(const core::Op& op, int warp) {
  const Global* g = global(op);
  std::vector<int64_t> at;
  std::vector<bool> active;
  if (g == nullptr || !lanes_of(*g, at, active)) return;
  const int output = output_of(g->tensor);
  if (output < 0) {
    why = "a store goes to another tensor than the meaning has";
    return;
  }
  const ElementAt& to = means_.outputs[static_cast<std::size_t>(output)].to;
  std::vector<int64_t> base(to.at.size());  // what is added to each index to count from the tile
  for (std::size_t d = 0; d < to.at.size(); ++d) {
    const Term from = bases_[static_cast<std::size_t>(g->bases[d])];
    if (!corner(op, warp, to.at[d], from, base[d])) return;
  }
  const int64_t first = eval(g->first);
  for (int64_t e = 0; e < g->elements && !stopped(); ++e) {
    const Id value = slot(warp, g->registers, first + e);
    if (value == Formulas::none && why.empty())
      why = "registers are stored whose values are not followed";
    Elements place{Elements::of_sum, {row_base, column_base}, {}};
    place.at.resize(std::size_t{2} * Elements::lanes);
    for (int lane = 0; lane < Elements::lanes && !stopped(); ++lane) {
      const auto at_lane = static_cast<std::size_t>(lane);
      int64_t &row = place.at[at_lane], &column = place.at[Elements::lanes + at_lane];
      for (std::size_t d = 0; d < to.at.size() && !stopped(); ++d) {
        const int64_t index =
            base[d] + at[d * Elements::lanes + at_lane] + (static_cast<int>(d) == g->along ? e : 0);
        if (to.at[d].axis == Axis::row) row = index;
        if (to.at[d].axis == Axis::column) column = index;
        if (active[at_lane]) at_batch(op, warp, to.at[d], index);
      }
      if (!stopped() && means_.sums() && active[at_lane])
        stored(op, warp, lane, value, row, column, output);
    }
    if (!stopped() && !means_.sums()) stored_function(op, warp, value, place, active, output);
  }
}

}  // namespace tessera::check
