// Products, powers and quotients of what registers hold while a softmax is computed.
#include <algorithm>
#include <cmath>
#include <limits>

#include "check/online.h"

namespace tessera::check {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Online::Id Online::multiply(Id a, Id b) {
  if ((*this)[a].kind == Kind::number) std::swap(a, b);
  const Value x = (*this)[a], y = (*this)[b];
  if (y.kind == Kind::number && x.kind == Kind::inverse && y.number == 1) return a;
  if (y.kind == Kind::number && x.kind != Kind::inverse && x.kind != Kind::result)
    return scaled(a, y.number);
  const bool first = x.kind == Kind::inverse && y.kind == Kind::sum;
  if (first || (y.kind == Kind::inverse && x.kind == Kind::sum)) {
    const Value& share = first ? x : y;
    const Id out = divide(scaled(first ? b : a, share.number), share.of);
    if (out == none || !share.or_zero) return out;
    Value result = (*this)[out];
    result.or_zero = true;
    return intern(result);
  }
  if (x.kind != Kind::sum || y.kind != Kind::sum || (x.keys >= 0 && y.keys >= 0))
    return unknown("a product of unlike values");
  Value out = x.keys >= 0 ? x : y;
  const Value& factor = x.keys >= 0 ? y : x;
  if (out.keys >= 0 && factor.row >= 0 && factor.row != out.row)
    return wrong("rescale", "a sum is multiplied by another row's factor",
                 fmt::format("the factor of row {}", out.row), fmt::format("of row {}", factor.row),
                 "let the factor be of the accumulator's row");
  if (!alike(out, factor)) return capped_apart(a, b);
  if (out.row < 0) out.row = factor.row;
  out.number *= factor.number;
  Linear l = forms_[static_cast<std::size_t>(out.linear)];
  const Linear& more = forms_[static_cast<std::size_t>(factor.linear)];
  l.constant += more.constant;
  l.parts.insert(l.parts.end(), more.parts.begin(), more.parts.end());
  gather(l.parts);
  out.linear = form(out.keys >= 0 ? settled(l, keys(out)) : l);
  return intern(out);
}

Online::Id Online::divide(Id a, Id b) {
  const Value x = (*this)[a], y = (*this)[b];
  if (y.kind == Kind::number && y.number == 0)
    return wrong("reduction", "a total of weights takes in no key", "the sum of all weights", "0",
                 "add each turn's weights to the total");
  if (y.kind == Kind::number) return scaled(a, 1 / y.number);
  if (y.kind != Kind::sum || y.keys < 0) return unknown("a division by what is no sum of powers");
  if (x.kind == Kind::number && x.number != 0)
    return intern({.kind = Kind::inverse, .number = x.number, .of = b});
  if (x.kind != Kind::sum || x.keys < 0) return unknown("a division of unlike values");
  if (x.row != y.row || y.column >= 0 || x.column < 0)
    return wrong("placement", "a sum is divided by another row's total", text(a), text(b),
                 "divide by the total of the accumulator's row");
  if (!alike(x, y)) return capped_apart(a, b);
  if (keys(x) != keys(y))
    return wrong("reduction", "a sum of values and the total of its weights are of different keys",
                 text(a), text(b),
                 "let both take in the same keys, and add the parts of all lanes");
  const Linear &l = forms_[static_cast<std::size_t>(x.linear)],
               &m = forms_[static_cast<std::size_t>(y.linear)];
  if (!same(x.number, y.number) || !same(x.scale, y.scale) || !same_forms(l, m))
    return wrong("rescale", "a sum of values and the total of its weights have different factors",
                 exponents(x), exponents(y), "multiply both by the same factors");
  return intern({.kind = Kind::result,
                 .scale = x.scale,
                 .inner = x.inner,
                 .weight = x.weight,
                 .row = x.row,
                 .keys = x.keys});
}

/// tanh of a score, perhaps scaled.
Online::Id Online::capped(Id id) {
  Linear l;
  if (!linear_of(id, l) || l.parts.size() != 1 || l.constant != 0 || !(l.parts[0].by > 0))
    return unknown("a tanh of what is no score");
  Value out = (*this)[l.parts[0].of];
  if (out.kind != Kind::score || out.inner > 0 || out.weight > 0)
    return unknown("a tanh of what is no product");
  if (out.mask != 0 || out.shown)
    return wrong("mask", "a score is capped that is masked before: tanh(-inf) is -1", "-inf",
                 text(l.parts[0].of), "cap scores first, then mask them");
  out.inner = l.parts[0].by;
  return intern(out);
}

/// Of scores that are not capped the same way.
Online::Id Online::capped_apart(Id a, Id b) {
  return wrong("rescale", "scores come together that are not capped and scaled the same way",
               "one cap and one scale for all scores of a row", text(a) + " and " + text(b),
               "cap all scores, in each step, before the greatest is taken");
}

Online::Id Online::power(Id exponent, double base_log2) {
  Linear l;
  if (!linear_of(exponent, l)) return unknown("a power of what is no difference of scores");
  l.constant *= base_log2;
  for (Part& p : l.parts) p.by *= base_log2;
  Value out{.kind = Kind::sum, .number = 1};
  Linear rest{0, {}};
  Id score = none;
  for (const Part& p : l.parts) {
    const Value& v = (*this)[p.of];
    if (out.row >= 0 && out.row != v.row)
      return wrong("rescale", "scores of different rows are subtracted",
                   fmt::format("row {}", out.row), fmt::format("row {}", v.row),
                   "take off the greatest score of the same row");
    if (out.row >= 0 && !alike(out, v)) return capped_apart(l.parts.front().of, p.of);
    out.row = v.row;
    out.inner = v.inner;
    out.weight = v.weight;
    if (v.kind == Kind::greatest) {
      if (p.by < 0 && !p.finite && !always_a_key) needs_a_key = true;
      rest.parts.push_back(p);
    } else if (p.by < 0) {
      return wrong("dominance", "a power is taken of a negated score",
                   "a score from which the greatest is taken off", "-" + text(p.of),
                   "take the greatest off the score, not the score off the greatest");
    } else if (score != none || p.by == 0) {
      return unknown("a power of several scores");
    } else {
      score = p.of;
      out.scale = p.by;
    }
  }
  if (l.constant == -infinity) return number(0);
  if (l.parts.empty()) return number(std::exp2(l.constant));
  out.number = std::exp2(l.constant);
  return bounded(out, score, std::move(rest));
}

/// A power is at most 1: what is taken off is at least what it is taken from.
Online::Id Online::bounded(Value out, Id score, Linear rest) {
  const Value from = score == none ? Value{} : (*this)[score];
  Keys of;
  if (score != none) {
    if (!score_is_seen(score)) return none;
    of.of[static_cast<std::size_t>(from.turn)].set(static_cast<std::size_t>(from.column));
  }
  double above = score == none ? 0 : out.scale, below = 0;
  for (const Part& p : rest.parts)
    if (p.by > 0) {
      above += p.by;
      of.add(keys((*this)[p.of]));
    }
  for (const Part& p : rest.parts)
    if (p.by < 0 && keys((*this)[p.of]).has(of)) below -= p.by;
  if (!same(above, below) || of.none())
    return wrong("dominance", "a power is taken of a score from which no greater one is taken off",
                 "the greatest of all scores so far, times the same scale",
                 exponents_of(rest) + (score == none ? "" : " for " + text(score)),
                 "take off the greatest score, with this one among them");
  if (score != none) {
    out.keys = set(of);
    rest = settled(rest, of);
  }
  out.linear = form(std::move(rest));
  return intern(out);
}

}  // namespace tessera::check
