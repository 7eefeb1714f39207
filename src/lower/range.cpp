#include "lower/range.h"

#include <algorithm>
#include <vector>

#include "term/rules.h"

namespace tessera::lower {
namespace {

using term::Op;
using term::Term;

Wide clamped(Wide x) {
  return std::clamp(x, -Range::unbounded, Range::unbounded);
}
bool bounded(Wide x) {
  return -Range::unbounded < x && x < Range::unbounded;
}

/// Sums of unbounded ends stay unbounded.
Wide plus(Wide a, Wide b) {
  if (!bounded(a)) return a;
  return bounded(b) ? clamped(a + b) : b;
}

/// Exact below 2^120, else the side that it is on.
Wide times(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  const bool negative = (a < 0) != (b < 0);
  const Wide x = a < 0 ? -a : a, y = b < 0 ? -b : b;
  if (x > Range::unbounded / y) return negative ? -Range::unbounded : Range::unbounded;
  return negative ? -(x * y) : x * y;
}

Wide floor_divided(Wide a, Wide b) {
  if (!bounded(a)) return a;
  const Wide q = a / b;
  return q * b > a ? q - 1 : q;
}

Range joined(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range product(const Range& a, const Range& b) {
  const Wide ends[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low),
                       times(a.high, b.high)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

/// The divisor is at least 1.
Range quotient(const Range& a, const Range& b) {
  const Wide least = std::max<Wide>(b.low, 1), most = std::max<Wide>(b.high, 1);
  return {floor_divided(a.low, a.low < 0 ? least : most),
          floor_divided(a.high, a.high < 0 ? most : least)};
}

Range remainder(const Range& a, const Range& b) {
  const Wide most = std::max<Wide>(b.high - 1, 0);
  if (a.low >= 0) return {0, std::min(a.high, most)};
  return {0, most};
}

/// 2^n for the amounts of a shift.
Range power(const Range& n) {
  return {Wide{1} << std::max<Wide>(n.low, 0), Wide{1} << std::min<Wide>(n.high, 62)};
}

Range narrowed(Range r, const term::Facts& facts) {
  if (facts.lower) r.low = std::max<Wide>(r.low, *facts.lower);
  if (facts.upper) r.high = std::min<Wide>(r.high, *facts.upper);
  return r;
}

}  // namespace

const Range& Ranges::of(Term t) {
  if (const auto found = known_.find(t.node()); found != known_.end()) return found->second;
  const Range r = t->predicate() ? Range{0, 1} : narrowed(computed(t), t->facts);
  return known_.emplace(t.node(), r).first->second;
}

Range Ranges::of_symbol(Term t) {
  if (t == kernel_.at.blocks) return {1, of(kernel_.grid).high};
  if (t == kernel_.at.block) return {0, of(kernel_.grid).high - 1};
  Range r;
  const term::Bounds& bounds = t->symbol->bounds;
  if (bounds.lower) r.low = of(bounds.lower).low;
  if (bounds.upper) r.high = of(bounds.upper).high - 1;
  return r;
}

/// c * b where c counts up to x // b: (c + 1) * b <= x.
Range Ranges::of_product(Term a, Term b) {
  Range r = product(of(a), of(b));
  for (const auto& [counter, step] : {std::pair(a, b), std::pair(b, a)}) {
    if (counter->op != Op::counter) continue;
    const Term upper = counter->symbol->bounds.upper;
    if (upper && upper->op == Op::divide && upper->args[1] == step && of(counter).low >= 0)
      r.high = std::min(r.high, plus(of(upper->args[0]).high, -of(step).low));
  }
  return r;
}

/// The deal that t is an item of, whose blocks are the grid's or its clusters.
std::optional<core::Deal> Ranges::dealt(Term t) const {
  std::optional<core::Deal> deal = core::deal_of(t);
  const Term block = kernel_.at.block;
  const bool known =
      deal && (deal->block == block || (kernel_.cluster > 1 && !deal->alternates &&
                                        deal->block == term::floor_div(block, kernel_.cluster)));
  return known ? deal : std::nullopt;
}

/// What t is below, as a term: items that a loop deals out, or a remainder's divisor.
std::optional<Term> Ranges::above(Term t) const {
  if (t->op == Op::remainder) return t->args[1];
  if (t == kernel_.at.block) return kernel_.grid;
  const std::optional<core::Deal> deal = dealt(t);
  return deal ? std::optional<Term>(deal->items) : std::nullopt;
}

namespace {

/// The factors that are no constants, and the constant.
void factors_of(Term t, std::vector<Term>& out, Wide& constant) {
  if (t->op == Op::constant) {
    constant = times(constant, t->value);
  } else if (t->op == Op::multiply) {
    factors_of(t->args[0], out, constant);
    factors_of(t->args[1], out, constant);
  } else {
    out.push_back(t);
  }
}

}  // namespace

/// t // d with t < n: where the factors of d are among those of n, t // d is below n / d.
Range Ranges::of_quotient(Term t, Term d) {
  Range r = quotient(of(t), of(d));
  const std::optional<Term> n = above(t);
  if (!n || of(t).low < 0) return r;
  std::vector<Term> many, few;
  Wide items = 1, each = 1;
  factors_of(*n, many, items);
  factors_of(d, few, each);
  for (const Term f : few) {
    const auto same = std::find(many.begin(), many.end(), f);
    if (same == many.end()) return r;
    many.erase(same);
  }
  for (const Term f : many) items = times(items, of(f).high);
  if (each >= 1 && items >= 1 && bounded(items)) r.high = std::min(r.high, (items - 1) / each);
  return r;
}

/// Bits of numbers that are not negative stay below the next power of two.
Range Ranges::of_bits(Term t) {
  const Range a = of(t->args[0]), b = of(t->args[1]);
  if (t->op == Op::bit_and && (a.low >= 0 || b.low >= 0))
    return {0, a.low < 0 ? b.high : b.low < 0 ? a.high : std::min(a.high, b.high)};
  if (a.low < 0 || b.low < 0) return {};
  Wide most = 1;
  while (most <= std::max(a.high, b.high) && most < Range::unbounded) most *= 2;
  return {0, most - 1};
}

Range Ranges::computed(Term t) {
  if (t->leaf())
    return t->op == Op::constant ? Range{t->value, t->value}
           : t->op == Op::truth  ? Range{0, 1}
                                 : of_symbol(t);
  if (t->op == Op::select) return joined(of(t->args[1]), of(t->args[2]));
  if (t->op == Op::read) {
    const term::Facts& f = t->symbol->facts;
    return narrowed({}, f);
  }
  if (t->op == Op::multiply) return of_product(t->args[0], t->args[1]);
  if (t->op == Op::divide) return of_quotient(t->args[0], t->args[1]);
  const Range a = of(t->args[0]), b = of(t->args[1]);
  switch (t->op) {
    case Op::add: {
      const Range sum = {plus(a.low, b.low), plus(a.high, b.high)};
      const std::optional<core::Deal> deal = dealt(t);
      if (!deal) return sum;
      return {std::max<Wide>(sum.low, 0), std::min(sum.high, plus(of(deal->items).high, -1))};
    }
    case Op::subtract:
      return {plus(a.low, -b.high), plus(a.high, -b.low)};
    case Op::remainder:
      return remainder(a, b);
    case Op::shift_left:
      return product(a, power(b));
    case Op::shift_right:
      return quotient(a, power(b));
    case Op::min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return of_bits(t);
  }
}

}  // namespace tessera::lower
