#include "check/attend.h"

#include <numbers>

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
    if (products_.trace(out_)) rest();
    return std::move(out_);
  }

 private:
  void rest() {
    loop_ = products_.loop;
    at_ = {loop_of_keys(), products_.role, products_.loops(), {}, {}, 0};
    if (!extents() || !blocks() || !at_least_one()) return;
    std::vector<Term> places = {kernel_.at.lane, products_.role->warp};
    add_places(products_.role->body, places);
    SeenKeys seen(kernel_, std::move(places), *loop_);
    const std::optional<std::vector<SeenKeys::Hidden>> hidden =
        seen.hidden([&](int64_t row, int64_t column) { return seen_at(row, column); });
    if (!hidden) {
      products_.give_up("mask", "which keys are seen is no bound on the key's place");
      return;
    }
    seen.means(*hidden);
    if (!reaches(*hidden)) return;
    Online online(seen);
    AttendWalk walk(kernel_, products_, seen, online, means_.scale * std::numbers::log2e);
    if (!walk.run()) return;
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

  /// A row of the tile and a key of the turn's block: whether it is seen, by the meaning.
  [[nodiscard]] Term seen_at(int64_t row, int64_t key, Term from = {}) const {
    const Term j = (from ? from : products_.key_corner) + key;
    Names names = products_.names();
    names.emplace(means_.row, products_.row_corner + row);
    names.emplace(means_.key, j);
    const Term inside = term::less(j, products_.key_count());
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

  /// The turns take the blocks 0, 1, ... of keys, or the same from the last one on.
  bool blocks() {
    const Term size = kernel_.pool->constant(products_.keys), turns = loop_->upper,
               turn = loop_->counter, corner = products_.key_corner;
    for (const Term block : {turn, turns - 1 - turn})
      if (term::simplify(corner - block * size) == kernel_.pool->constant(0)) return true;
    const Term next = with_term(corner, turn, turn + 1);
    const Term inside = term::logical_and(
        term::less_equal(kernel_.pool->constant(0), corner),
        term::logical_and(term::less(corner, turns * size),
                          term::equals(term::floor_mod(corner, size), kernel_.pool->constant(0))));
    const Term moves = term::logical_or(term::equals(turn + 1, turns),
                                        term::logical_not(term::equals(next, corner)));
    if (const auto found = fails(kernel_, products_.loops(), term::logical_and(inside, moves)))
      return products_.refute(
          "reduction", at_.op, products_.role->first_warp,
          "the turns of the loop do not take in each block of keys once",
          fmt::format("blocks of {} keys, one after the other, from either end", products_.keys),
          fmt::format("a block at `{}`, at {}", to_string(corner), *found),
          "count the blocks of keys up from 0, or down to 0");
    return products_.give_up("reduction", "the order of the blocks of keys is not known");
  }

  bool at_least_one() {
    const Term claim = term::less_equal(kernel_.pool->constant(1), loop_->upper);
    if (term::always(claim).proved()) return true;
    if (const auto found = fails(kernel_, around(), claim))
      return products_.refute("degenerate", at_.op, products_.role->first_warp,
                              "the loop over keys may turn no time", "one turn at least",
                              "none at " + *found, "let the loop turn once where no key is seen");
    return products_.give_up("degenerate", "it is not known that the loop over keys turns once");
  }

  /// The first key behind the last block is seen by no row; so none that follows is.
  bool reaches(const std::vector<SeenKeys::Hidden>& hidden) {
    int64_t worst = 0;
    for (const SeenKeys::Hidden& h : hidden) {
      // Whoever does not see a key sees none of the keys behind it.
      if (h.at_least ? h.by_column > 0 : h.by_column < 0)
        return products_.give_up("reduction", "keys are hidden before those that are seen");
      const bool later = h.at_least ? h.by_row > 0 : h.by_row < 0;
      if (h.by_row != 0 && later) worst = products_.rows - 1;
    }
    for (const SeenKeys::Hidden& h : hidden)
      if (h.by_row != 0 && (h.at_least ? h.by_row > 0 : h.by_row < 0) != (worst != 0))
        return products_.give_up("reduction", "rows see other last keys in both directions");
    const Term end = loop_->upper * products_.keys;
    if (term::always(term::logical_not(seen_at(worst, 0, end))).proved() ||
        by_rounding(term::simplify(loop_->upper), worst) || by_rounding(loop_->upper, worst))
      return true;
    for (const int64_t row : {worst, int64_t{0}, products_.rows / 2}) {
      const Term inside = term::less_equal(products_.queries(), products_.row_corner + row);
      if (const auto found = fails(
              kernel_, around(), term::logical_or(inside, term::logical_not(seen_at(row, 0, end)))))
        return products_.refute(
            "reduction", at_.op, products_.role->first_warp,
            "the loop over keys ends before the last key that a row sees",
            "all keys that are seen, in blocks",
            fmt::format("row {} of the tile sees key {}, at {}", row, to_string(end), *found),
            "round the number of turns up");
    }
    return products_.give_up("reduction", "it is not known that the loop reaches the last key");
  }

  /// Whether so many turns reach the last key that the row sees: (n + size - 1) // size of them
  /// reach n.
  // NOLINTNEXTLINE(misc-no-recursion): terms nest
  [[nodiscard]] bool by_rounding(Term turns, int64_t row) const {
    const auto& args = turns->args;
    if (turns->op == term::Op::max) return by_rounding(args[0], row) || by_rounding(args[1], row);
    if (turns->op == term::Op::min) return by_rounding(args[0], row) && by_rounding(args[1], row);
    if (turns->op != term::Op::divide || args[1]->op != term::Op::constant ||
        args[1]->value != products_.keys)
      return false;
    return hidden_from(term::simplify(args[0] - (products_.keys - 1)), row);
  }

  /// Whether the row sees no key from n on: key n is not seen, so none that follows is.
  // NOLINTNEXTLINE(misc-no-recursion): terms nest
  [[nodiscard]] bool hidden_from(Term n, int64_t row) const {
    if (n->op == term::Op::max) return hidden_from(n->args[0], row) || hidden_from(n->args[1], row);
    if (n->op == term::Op::min) return hidden_from(n->args[0], row) && hidden_from(n->args[1], row);
    return term::always(term::logical_not(seen_at(row, 0, n))).proved();
  }

  /// Each row sees a key in the first turn: then no greatest score is -inf.
  bool a_key_at_first(const core::Op& op) {
    const Term zero = kernel_.pool->constant(0);
    const auto first = [&](int64_t row) {
      return with_term(seen_at(row, 0), loop_->counter, zero);
    };
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
