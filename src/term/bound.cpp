#include "term/bound.h"

#include <functional>

namespace tessera::term {
namespace {

constexpr int deepest = 6;
constexpr int most_sums = 48;

// Replacements for `factor` that are below it (or above it).
std::vector<Sum> replacements(Term factor, bool below) {
  std::vector<Sum> out;
  const auto offer = [&](std::optional<Sum> s) {
    if (s) out.push_back(std::move(*s));
  };
  if (factor->symbol != nullptr) {
    const Bounds& b = factor->symbol->bounds;
    if (below && b.lower && b.lower->op != Op::constant) offer(sum_of(b.lower));
    if (!below && b.upper && b.upper->op != Op::constant)
      offer(add(sum_of(b.upper), constant_sum(-1)));
  }
  const auto sides = [&] {
    offer(sum_of(factor->args[0]));
    offer(sum_of(factor->args[1]));
  };
  if (factor->op == Op::max && below) sides();
  if (factor->op == Op::min && !below) sides();
  if (factor->op == Op::remainder && !below) {
    offer(add(sum_of(factor->args[1]), constant_sum(-1)));
    if (factor->args[0]->facts.at_least(0)) offer(sum_of(factor->args[0]));
  }
  return out;
}

// coefficient * (x // d) from below by coefficient / d * x, or coefficient / d * (x - d + 1), where
// d divides the coefficient.
std::optional<Sum> of_quotient(const Part& p) {
  if (p.atom->op != Op::divide || p.atom->args[1]->op != Op::constant) return std::nullopt;
  const int64_t d = p.atom->args[1]->value;
  if (p.coefficient % d != 0) return std::nullopt;
  const int64_t c = p.coefficient / d;
  std::optional<Sum> x = sum_of(p.atom->args[0]);
  if (c > 0) x = add(*x, constant_sum(1 - d));
  return x ? scale(*x, c) : std::nullopt;
}

// Sums that are below coefficient * atom.
std::vector<Sum> below_part(Pool& pool, const Part& p) {
  std::vector<Sum> out;
  if (auto q = of_quotient(p)) out.push_back(std::move(*q));
  const std::vector<Term> factors = factors_of(p.atom);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    std::vector<Term> others;
    for (std::size_t j = 0; j < factors.size(); ++j)
      if (j != i) others.push_back(factors[j]);
    const Term rest = product_of(pool, others);
    if (!rest->facts.at_least(0)) continue;
    for (const Sum& s : replacements(factors[i], p.coefficient > 0)) {
      const Sum product = others.empty() ? s : sum_of(term_of(pool, s) * rest);
      if (auto scaled = scale(product, p.coefficient)) out.push_back(std::move(*scaled));
    }
  }
  return out;
}

struct Search {
  Pool& pool;
  int64_t bound;
  int left = most_sums;

  bool at_least(const Sum& s, int depth) {
    if (facts_of_sum(s).at_least(bound)) return true;
    if (depth == 0) return false;
    for (const Part& p : s.parts) {
      for (const Sum& low : below_part(pool, p)) {
        if (left-- <= 0) return false;
        const std::optional<Sum> next = replaced(s, p, low);
        if (next && at_least(*next, depth - 1)) return true;
      }
      if (by_cases(s, p, depth)) return true;
    }
    return false;
  }

  // What is one of two values, whichever it is.
  bool by_cases(const Sum& s, const Part& p, int depth) {
    const bool choice = p.atom->op == Op::min || p.atom->op == Op::max || p.atom->op == Op::select;
    if (!choice) return false;
    for (std::size_t side = p.atom->args.size() - 2; side < p.atom->args.size(); ++side) {
      if (left-- <= 0) return false;
      const std::optional<Sum> value = scale(sum_of(p.atom->args[side]), p.coefficient);
      const std::optional<Sum> next = value ? replaced(s, p, *value) : std::nullopt;
      if (!next || !at_least(*next, depth - 1)) return false;
    }
    return true;
  }

  static std::optional<Sum> replaced(const Sum& s, const Part& p, const Sum& by) {
    const std::optional<Sum> rest = add_scaled(s, Sum{0, {{p.atom, 1}}}, -p.coefficient);
    return rest ? add(*rest, by) : std::nullopt;
  }
};

}  // namespace

bool proves_at_least(Pool& pool, const Sum& s, int64_t bound) {
  return Search{pool, bound}.at_least(s, deepest);
}

bool proves_at_most(Pool& pool, const Sum& s, int64_t bound) {
  const std::optional<Sum> negative = scale(s, -1);
  const auto low = narrow(-Wide{bound});
  return negative && low && proves_at_least(pool, *negative, *low);
}

bool proves_less_equal(Pool& pool, const Sum& a, const Sum& b) {
  const std::optional<Sum> apart = add_scaled(b, a, -1);
  return apart && proves_at_least(pool, *apart, 0);
}

bool proves_less(Pool& pool, const Sum& a, const Sum& b) {
  const std::optional<Sum> apart = add_scaled(b, a, -1);
  return apart && proves_at_least(pool, *apart, 1);
}

}  // namespace tessera::term
