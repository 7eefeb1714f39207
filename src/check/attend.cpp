#include "check/attend.h"

#include "check/attend_blocks.h"
#include "check/attend_loads.h"
#include "check/attend_tiles.h"
#include "check/attend_walk.h"
#include "check/launch.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

/// Symbols that tell places of a tile: elements of computations, counters of unrolled loops.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void add_places(const core::Body& body, std::vector<Term>& out) {
  for (const core::Op& op : body) {
    if (const auto* c = op.as<core::Compute>(); c != nullptr && c->element)
      out.push_back(c->element);
    if (const auto* loop = op.as<core::For>()) {
      if (loop->unroll) out.push_back(loop->counter);
      add_places(loop->body, out);
    }
    if (const auto* branch = op.as<core::If>()) {
      add_places(branch->body, out);
      add_places(branch->otherwise, out);
    }
    if (const auto* elected = op.as<core::Elected>()) add_places(elected->body, out);
  }
}

class Attend {
 public:
  Attend(const core::Kernel& kernel, const Runs& runs, const Attention& means)
      : kernel_(kernel), means_(means), products_(kernel, runs, means) {}

  Flow go() {
    out_.whole = false;
    if (products_.trace(out_)) rest();
    return std::move(out_);
  }

 private:
  void rest() {
    loop_ = products_.loop;
    at_ = {loop_of_keys(), products_.role, products_.loops(), {}, {}, 0};
    if (!extents()) return;
    KeyBlocks blocks(kernel_, products_, at_.op);
    if (!blocks.in_order()) return;
    std::vector<Term> places = {kernel_.at.lane, products_.role->warp};
    add_places(products_.role->body, places);
    SeenKeys seen(kernel_, std::move(places), products_.key_corner);
    const std::optional<std::vector<SeenKeys::Hidden>> hidden =
        seen.hidden(products_.rows, [&](Term row, Term key) { return seen_at(row, key); });
    if (!hidden) {
      products_.give_up("mask", "which keys are seen is no bound on the key's place");
      return;
    }
    seen.means(*hidden);
    if (!blocks.reach(seen, *hidden, [&](int64_t row, Term key) {
          return seen_at(kernel_.pool->constant(row), key);
        }))
      return;
    Online online(seen);
    if (means_.mask) online.tensor = means_.adds ? Online::Tensor::added : Online::Tensor::shows;
    AttendWalk walk(kernel_, products_, seen, online, means_);
    if (!walk.run()) return;
    out_.whole = true;
    loads_stay_inside(kernel_, products_);
    if (walk.needing() != nullptr && !a_key_at_first(*walk.needing())) return;
    tiles_once(kernel_, products_, means_);
  }

  /// Loops around the work on a tile.
  [[nodiscard]] std::vector<const core::For*> around() const {
    return products_.tiles ? std::vector{products_.tiles} : std::vector<const core::For*>();
  }

  const core::Op* loop_of_keys() const {
    for (const core::Op& op : products_.body())
      if (op.as<core::For>() == products_.loop) return &op;
    return nullptr;
  }

  /// Whether a row of the tile sees a key, by the meaning.
  [[nodiscard]] Term seen_at(Term row, Term key) const {
    Names names = products_.names();
    names.emplace(means_.row, products_.row_corner + row);
    names.emplace(means_.key, key);
    const Term inside = term::less(key, products_.key_count());
    if (!means_.seen) return inside;
    const Term seen = term_of(kernel_, *means_.seen, names);
    return seen ? term::logical_and(inside, seen) : Term();
  }

  /// K has as many rows as V; a tile has all columns of V.
  bool extents() {
    const Term values =
        kernel_[means_.v.tensor].extents[static_cast<std::size_t>(means_.v.place(means_.key))];
    if (term::simplify(values) != term::simplify(products_.key_count()))
      return products_.give_up("reduction", "K and V have different numbers of keys");
    const auto queries = term::simplify(
        kernel_[means_.q.tensor].extents[static_cast<std::size_t>(means_.q.place(means_.row))]);
    if (queries !=
        term::simplify(kernel_[means_.o.tensor]
                           .extents[static_cast<std::size_t>(products_.output_place(true))]))
      return products_.give_up("placement", "Q and the output have different numbers of rows");
    const auto columns = value_of(
        kernel_[means_.o.tensor].extents[static_cast<std::size_t>(products_.output_place(false))],
        {});
    if (columns != products_.columns)
      return products_.give_up("placement", "a tile has not all columns of the values");
    const auto depth_of_keys = value_of(
        kernel_[means_.k.tensor].extents[static_cast<std::size_t>(means_.k.place(means_.depth))],
        {});
    return depth_of_keys == products_.depth ||
           products_.give_up("reduction", "Q and K have different depths");
  }

  /// Each row sees a key in the first turn: then no greatest score is -inf.
  bool a_key_at_first(const core::Op& op) {
    const Term zero = kernel_.pool->constant(0);
    const auto first = [&](int64_t row) {
      return with_term(seen_at(kernel_.pool->constant(row), products_.key_corner), loop_->counter,
                       zero);
    };
    if (means_.mask)
      return products_.refute("degenerate", &op, products_.role->first_warp,
                              "a row that has seen no key yet takes -inf from -inf",
                              "a finite number in the place of a greatest score of -inf",
                              "NaN where the mask hides all keys of the first block",
                              "take off 0 where the greatest score is -inf");
    bool all = true;
    for (const int64_t row : {int64_t{0}, products_.rows - 1})
      all = all && term::always(first(row)).proved();
    if (all) return true;
    // Where no key of the block is seen, the first is not: later ones are not, if seen keys are
    // those up to some key.
    for (const int64_t row : {int64_t{0}, products_.rows / 2})
      if (const auto found = fails(
              kernel_, around(),
              term::logical_or(term::less_equal(products_.queries(), products_.row_corner + row),
                               first(row))))
        return products_.refute("degenerate", &op, products_.role->first_warp,
                                "a row that has seen no key yet takes -inf from -inf",
                                "a finite number in the place of a greatest score of -inf",
                                "NaN at " + *found, "take off 0 where the greatest score is -inf");
    return products_.give_up("degenerate",
                             "it is not known that a row sees a key in the first turn");
  }

  const core::Kernel& kernel_;
  const Attention& means_;
  AttendProducts products_;
  const core::For* loop_ = nullptr;
  Place at_;
  Flow out_;
};

}  // namespace

Flow attend(const core::Kernel& kernel, const Runs& runs, const Attention& means) {
  return Attend(kernel, runs, means).go();
}

}  // namespace tessera::check
