#include "term/testing/random_terms.h"

namespace tessera::term::testing {

Axis trial_axis(Term leaf) {
  const Facts& f = leaf->symbol->facts;
  const int64_t step = std::max<int64_t>(f.modulus, 1);
  constexpr int64_t most = 16;
  if (f.lower) {
    const int64_t count = f.upper ? (*f.upper - *f.lower) / step + 1 : 5;
    return {leaf, *f.lower, step, std::min(count, most)};
  }
  if (f.upper) return {leaf, *f.upper - 4 * step, step, 5};
  return {leaf, f.residue - 3 * step, step, 7};
}

std::vector<Axis> trial_axes(const std::vector<Term>& terms) {
  std::vector<Axis> out;
  for (Term leaf : symbols_of(terms)) out.push_back(trial_axis(leaf));
  return out;
}

RandomTerms::RandomTerms(uint64_t seed) : random_(seed) {
  renew();
}

void RandomTerms::renew() {
  pool_ = std::make_unique<Pool>();
  Pool& p = *pool_;
  constexpr int64_t extents[] = {2, 3, 4, 5, 6, 8, 12, 16};
  leaves_ = {*p.coordinate("x", extents[draw(8)]), *p.coordinate("y", extents[draw(5)])};
  divisors_.clear();
  if (draw(2) == 0)
    leaves_.push_back(*p.counter("k", p.constant(draw(3)), p.constant(3 + draw(4))));
  if (draw(2) == 0) leaves_.push_back(*p.parameter("M"));
  if (draw(2) == 0) {
    const int64_t multiple = 1 + draw(4);
    leaves_.push_back(
        *p.parameter("N", {p.constant(1), draw(2) == 0 ? Term() : p.constant(9), multiple, 0}));
    divisors_.push_back(leaves_.back());
    if (draw(2) == 0) leaves_.push_back(*p.counter("j", p.constant(0), divisors_.back()));
  }
  memory_ = *p.memory("perm", 1, {p.constant(0), p.constant(2 + draw(10))});
}

Term RandomTerms::leaf() {
  const int which = draw(static_cast<int>(leaves_.size()) + 1);
  return which < static_cast<int>(leaves_.size()) ? leaves_[which] : pool_->constant(interesting());
}

int64_t RandomTerms::interesting() {
  constexpr int64_t values[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  12,
                                15, 16, 32, 64, -1, -2, -3, -4, -8, 100};
  return values[draw(20)];
}

Term RandomTerms::divisor() {
  constexpr int64_t values[] = {1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16};
  if (!divisors_.empty() && draw(6) == 0)
    return draw(2) == 0 ? divisors_[0] : divisors_[0] * values[draw(12)];
  return pool_->constant(values[draw(12)]);
}

Term RandomTerms::number(int depth) {
  if (depth <= 0 || draw(12) == 0) return leaf();
  Pool& p = *pool_;
  switch (draw(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return number(depth - 1) + number(depth - 1);
    case 4:
      return number(depth - 1) - number(depth - 1);
    case 5:
    case 6:
    case 7:
      return p.constant(interesting()) * number(depth - 1);
    case 8:
      return number(depth - 1) * number(depth - 2);
    case 9:
    case 10:
    case 11:
    case 12:
      return floor_div(number(depth - 1), divisor());
    case 13:
    case 14:
    case 15:
    case 16:
      return floor_mod(number(depth - 1), divisor());
    case 17:
      return bit_xor(number(depth - 1), number(depth - 1));
    case 18:
      return p.must(draw(2) == 0 ? Op::bit_and : Op::bit_or,
                    {number(depth - 1), number(depth - 1)});
    case 19:
      return p.must(Op::bit_and, {number(depth - 1), p.constant(interesting())});
    case 20:
      return p.must(draw(2) == 0 ? Op::shift_left : Op::shift_right,
                    {number(depth - 1), p.constant(draw(4))});
    case 21:
      return p.must(draw(2) == 0 ? Op::min : Op::max, {number(depth - 1), number(depth - 1)});
    case 22:
      return p.must(Op::select, {predicate(depth - 1), number(depth - 1), number(depth - 1)});
    default:
      return *p.read(memory_, {number(depth - 2)});
  }
}

Term RandomTerms::predicate(int depth) {
  Pool& p = *pool_;
  if (depth > 1 && draw(3) == 0) {
    switch (draw(3)) {
      case 0:
        return logical_and(predicate(depth - 1), predicate(depth - 1));
      case 1:
        return logical_or(predicate(depth - 1), predicate(depth - 1));
      default:
        return logical_not(predicate(depth - 1));
    }
  }
  constexpr Op comparisons[] = {Op::equal, Op::not_equal, Op::less, Op::less_equal};
  return p.must(comparisons[draw(4)], {number(depth - 1), number(depth - 1)});
}

}  // namespace tessera::term::testing
