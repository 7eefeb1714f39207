#include "check/attend_blocks.h"

#include <algorithm>

#include "check/launch.h"
#include "term/query.h"
#include "term/rules.h"
#include "term/sum.h"

namespace tessera::check {

KeyBlocks::KeyBlocks(const core::Kernel& kernel, AttendProducts& products, const core::Op* loop)
    : kernel_(kernel), products_(products), op_(loop), loop_(*products.loop) {}

/// Loops around the work on a tile.
std::vector<const core::For*> KeyBlocks::around() const {
  return products_.tiles ? std::vector{products_.tiles} : std::vector<const core::For*>();
}

/// A small launch, and a tile of it, of which the claim does not hold.
std::optional<std::string> KeyBlocks::found(Term claim) const {
  const auto few = fails(kernel_, around(), claim);
  return few ? few : fails_at_lengths(kernel_, around(), claim, products_.lengths());
}

bool KeyBlocks::in_order() {
  const Term zero = kernel_.pool->constant(0), turn = loop_.counter, corner = products_.key_corner;
  first_ = term::simplify(with_term(corner, turn, zero));
  for (const bool down : {false, true}) {
    const Term way = turn * (down ? -products_.keys : products_.keys);
    if (term::simplify(corner - (first_ + way)) != zero) continue;
    down_ = down;
    return starts_at_zero() && at_least_one();
  }
  const Term next = with_term(corner, turn, turn + 1),
             size = kernel_.pool->constant(products_.keys);
  const Term moves = term::logical_or(
      term::equals(turn + 1, loop_.upper),
      term::logical_or(term::equals(next, corner + size), term::equals(next, corner - size)));
  if (const auto found = fails(kernel_, products_.loops(), moves))
    return products_.refute(
        "reduction", op_, products_.role->first_warp,
        "the turns of the loop do not take in each block of keys once",
        fmt::format("blocks of {} keys, one after the other, from either end", products_.keys),
        fmt::format("a block at `{}`, at {}", to_string(corner), *found),
        "count the blocks of keys up from the first one that is seen, or down to it");
  return products_.give_up("reduction", "the order of the blocks of keys is not known");
}

/// No block begins before key 0, where the meaning has no keys.
bool KeyBlocks::starts_at_zero() {
  const Term zero = kernel_.pool->constant(0);
  const std::function<bool(Term)> fine = [&](Term turns) {
    // As many turns as one of the two says.
    if (down_ && (turns->op == term::Op::max || turns->op == term::Op::min))
      return fine(turns->args[0]) && fine(turns->args[1]);
    const Term start = down_ ? first_ - (turns - 1) * products_.keys : first_;
    return term::always(term::less_equal(zero, term::simplify(start))).proved();
  };
  if (fine(term::simplify(loop_.upper))) return true;
  if (const auto found =
          fails(kernel_, products_.loops(), term::less_equal(zero, products_.key_corner)))
    return products_.refute(
        "reduction", op_, products_.role->first_warp, "a turn takes in keys before the first",
        "blocks from key 0 on",
        fmt::format("a block at `{}`, at {}", to_string(products_.key_corner), *found),
        "let the last block be the first that is seen");
  return products_.give_up("reduction", "it is not known that blocks of keys begin at 0 or behind");
}

bool KeyBlocks::at_least_one() {
  const Term claim = term::less_equal(kernel_.pool->constant(1), loop_.upper);
  if (term::always(claim).proved()) return true;
  if (const auto at = found(claim))
    return products_.refute("degenerate", op_, products_.role->first_warp,
                            "the loop over keys may turn no time", "one turn at least",
                            "none at " + *at, "let the loop turn once where no key is seen");
  return products_.give_up("degenerate", "it is not known that the loop over keys turns once");
}

bool KeyBlocks::reach(const SeenKeys& keys, const std::vector<SeenKeys::Hidden>& hidden,
                      const std::function<Term(int64_t, Term)>& seen) {
  keys_ = &keys;
  seen_ = seen;
  return side(hidden, true, behind_) && side(hidden, false, before_) && ends_late() &&
         begins_early();
}

bool KeyBlocks::side(const std::vector<SeenKeys::Hidden>& hidden, bool behind, Side& out) {
  bool later = false, earlier = false;  // rows see more on this side
  for (const SeenKeys::Hidden& h : hidden) {
    const bool this_side = h.by_column == 0 || (h.at_least == (h.by_column < 0)) == behind;
    if (!this_side) continue;
    out.bounds.push_back(h);
    if (h.by_row != 0) (h.at_least == (h.by_row > 0) ? later : earlier) = true;
  }
  if (later && earlier)
    return products_.give_up("reduction", "rows see other keys in both directions");
  out.worst = later ? products_.rows - 1 : 0;
  return true;
}

/// That one of the side's bounds hides the key from the row that sees most.
Term KeyBlocks::hidden_on(const Side& side, Term key) const {
  Term out = kernel_.pool->truth(false);
  for (const SeenKeys::Hidden& h : side.bounds)
    out = term::logical_or(out, term::simplify(keys_->hides(h, side.worst, key)));
  return out;
}

/// So many blocks of keys are this many keys; an invalid term where it is no number of blocks.
Term KeyBlocks::quotient(Term keys) const {
  term::Sum sum = term::sum_of(term::simplify(keys));
  if (sum.constant % products_.keys != 0) return {};
  sum.constant /= products_.keys;
  for (term::Part& p : sum.parts) {
    if (p.coefficient % products_.keys != 0) return {};
    p.coefficient /= products_.keys;
  }
  return term::term_of(*kernel_.pool, sum);
}

/// The first key behind the last block is seen by no row; so none that follows is.
bool KeyBlocks::ends_late() {
  const Term end = down_ ? first_ + products_.keys : first_ + loop_.upper * products_.keys;
  const Term blocks = quotient(end);
  if (hidden_from(term::simplify(end)) || (blocks && by_rounding(blocks)) ||
      (term::simplify(end - loop_.upper * products_.keys) == kernel_.pool->constant(0) &&
       by_rounding(loop_.upper)))
    return true;
  for (const int64_t row : {behind_.worst, int64_t{0}, products_.rows / 2}) {
    const Term inside = term::less_equal(products_.queries(), products_.row_corner + row);
    if (const auto at = found(term::logical_or(inside, term::logical_not(seen_(row, end)))))
      return products_.refute(
          "reduction", op_, products_.role->first_warp,
          "the loop over keys ends before the last key that a row sees",
          "all keys that are seen, in blocks",
          fmt::format("row {} of the tile sees key {}, at {}", row, to_string(end), *at),
          "round the number of turns up");
  }
  return products_.give_up("reduction", "it is not known that the loop reaches the last key");
}

/// Whether so many blocks reach the last key that a row sees: (n + size - 1) // size of them
/// reach n.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
bool KeyBlocks::by_rounding(Term blocks) const {
  const auto& args = blocks->args;
  term::Sum sum = term::sum_of(blocks);
  if (sum.constant > 0) {
    sum.constant = 0;
    return by_rounding(term::term_of(*kernel_.pool, sum));
  }
  if (blocks->op == term::Op::max) return by_rounding(args[0]) || by_rounding(args[1]);
  if (blocks->op == term::Op::min) return by_rounding(args[0]) && by_rounding(args[1]);
  if (blocks->op != term::Op::divide || args[1]->op != term::Op::constant ||
      args[1]->value != products_.keys)
    return false;
  return hidden_from(term::simplify(args[0] - (products_.keys - 1)));
}

/// Whether rows see no key from this one on.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
bool KeyBlocks::hidden_from(Term key) const {
  if (key->op == term::Op::max) return hidden_from(key->args[0]) || hidden_from(key->args[1]);
  if (key->op == term::Op::min) return hidden_from(key->args[0]) && hidden_from(key->args[1]);
  return term::always(hidden_on(behind_, key)).proved();
}

/// The last key before the first block is seen by no row; so none before it is.
bool KeyBlocks::begins_early() {
  if (down_ ? begins_in_time(term::simplify(loop_.upper)) : hidden_up_to(first_)) return true;
  const Term start = down_ ? first_ - (loop_.upper - 1) * products_.keys : first_;
  for (const int64_t row : {before_.worst, products_.rows / 2, products_.rows - 1}) {
    const Term outside =
        term::logical_or(term::less_equal(products_.queries(), products_.row_corner + row),
                         term::less_equal(start, kernel_.pool->constant(0)));
    if (const auto at = found(term::logical_or(outside, term::logical_not(seen_(row, start - 1)))))
      return products_.refute(
          "reduction", op_, products_.role->first_warp,
          "the blocks of keys begin behind the first key that a row sees",
          "all keys that are seen, in blocks",
          fmt::format("row {} of the tile sees key {}, at {}", row, to_string(start - 1), *at),
          "let the first block be that of the first key which the tile's first row sees");
  }
  return products_.give_up("reduction", "it is not known that the loop reaches the first key");
}

/// Whether so many turns, from the last block down, come to the first key that a row sees.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
bool KeyBlocks::begins_in_time(Term turns) const {
  const auto& args = turns->args;
  if (turns->op == term::Op::max) return begins_in_time(args[0]) || begins_in_time(args[1]);
  if (turns->op == term::Op::min) return begins_in_time(args[0]) && begins_in_time(args[1]);
  return hidden_up_to(term::simplify(first_ - (turns - 1) * products_.keys));
}

/// Whether rows see no key before this one.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
bool KeyBlocks::hidden_up_to(Term key) const {
  if (key->op == term::Op::max) return hidden_up_to(key->args[0]) && hidden_up_to(key->args[1]);
  if (key->op == term::Op::min) return hidden_up_to(key->args[0]) || hidden_up_to(key->args[1]);
  if (term::always(term::less_equal(key, kernel_.pool->constant(0))).proved()) return true;
  // size * (n // size) is at most n.
  const Term block = quotient(key);
  if (block && block->op == term::Op::divide && block->args[1]->op == term::Op::constant &&
      block->args[1]->value == products_.keys)
    return hidden_up_to(block->args[0]);
  return term::always(hidden_on(before_, key - 1)).proved();
}

}  // namespace tessera::check
