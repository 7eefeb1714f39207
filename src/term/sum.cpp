#include "term/sum.h"

#include <algorithm>
#include <limits>

namespace tessera::term {
namespace {

constexpr std::size_t most_parts = 64;

bool by_id(const Part& a, const Part& b) {
  return a.atom->id < b.atom->id;
}

// Sorts and merges; nullopt where a coefficient overflows.
std::optional<Sum> tidy(Wide constant, std::vector<std::pair<Term, Wide>> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.first->id < b.first->id; });
  Sum out;
  const auto c = narrow(constant);
  if (!c) return std::nullopt;
  out.constant = *c;
  for (std::size_t i = 0; i < parts.size();) {
    const Term atom = parts[i].first;
    Wide total = 0;
    for (; i < parts.size() && parts[i].first == atom; ++i) total += parts[i].second;
    const auto coefficient = narrow(total);
    if (!coefficient) return std::nullopt;
    if (*coefficient != 0) out.parts.push_back({atom, *coefficient});
  }
  return out;
}

std::optional<Sum> multiply(Pool& pool, const Sum& a, const Sum& b) {
  if ((a.parts.size() + 1) * (b.parts.size() + 1) > most_parts) return std::nullopt;
  std::vector<std::pair<Term, Wide>> parts;
  for (const Part& x : a.parts) {
    parts.emplace_back(x.atom, Wide{x.coefficient} * b.constant);
    for (const Part& y : b.parts) {
      std::vector<Term> factors = factors_of(x.atom);
      for (Term f : factors_of(y.atom)) factors.push_back(f);
      parts.emplace_back(product_of(pool, std::move(factors)), Wide{x.coefficient} * y.coefficient);
    }
  }
  for (const Part& y : b.parts) parts.emplace_back(y.atom, Wide{y.coefficient} * a.constant);
  for (const auto& [atom, coefficient] : parts)
    if (!narrow(coefficient)) return std::nullopt;
  return tidy(Wide{a.constant} * b.constant, std::move(parts));
}

}  // namespace

Sum constant_sum(int64_t value) {
  return {value, {}};
}

std::optional<Sum> add_scaled(const Sum& a, const Sum& b, int64_t by) {
  Sum out;
  out.parts.reserve(a.parts.size() + b.parts.size());
  const auto push = [&](Term atom, Wide coefficient) {
    const auto c = narrow(coefficient);
    if (c && *c != 0) out.parts.push_back({atom, *c});
    return c.has_value();
  };
  auto x = a.parts.begin();
  auto y = b.parts.begin();
  while (x != a.parts.end() || y != b.parts.end()) {
    bool fits = false;
    if (y == b.parts.end() || (x != a.parts.end() && by_id(*x, *y))) {
      fits = push(x->atom, x->coefficient);
      ++x;
    } else if (x == a.parts.end() || by_id(*y, *x)) {
      fits = push(y->atom, Wide{y->coefficient} * by);
      ++y;
    } else {
      fits = push(x->atom, Wide{y->coefficient} * by + x->coefficient);
      ++x, ++y;
    }
    if (!fits) return std::nullopt;
  }
  const auto constant = narrow(Wide{b.constant} * by + a.constant);
  if (!constant || out.parts.size() > most_parts) return std::nullopt;
  out.constant = *constant;
  return out;
}

std::optional<Sum> add(const Sum& a, const Sum& b) {
  return add_scaled(a, b, 1);
}

std::optional<Sum> scale(const Sum& a, int64_t by) {
  return add_scaled({}, a, by);
}

std::vector<Term> factors_of(Term atom) {
  if (atom->op != Op::multiply) return {atom};
  std::vector<Term> out = factors_of(atom->args[0]);
  for (Term f : factors_of(atom->args[1])) out.push_back(f);
  std::sort(out.begin(), out.end(), [](Term a, Term b) { return a->id < b->id; });
  return out;
}

Term product_of(Pool& pool, std::vector<Term> factors) {
  if (factors.empty()) return pool.constant(1);
  std::sort(factors.begin(), factors.end(), [](Term a, Term b) { return a->id < b->id; });
  Term out = factors[0];
  for (std::size_t i = 1; i < factors.size(); ++i) out = out * factors[i];
  return out;
}

Sum sum_of(Term t) {
  if (t->op == Op::constant) return constant_sum(t->value);
  Sum itself{0, {{t, 1}}};
  if (t->op == Op::add || t->op == Op::subtract)
    return add_scaled(sum_of(t->args[0]), sum_of(t->args[1]), t->op == Op::add ? 1 : -1)
        .value_or(itself);
  if (t->op == Op::multiply) {
    const Sum a = sum_of(t->args[0]), b = sum_of(t->args[1]);
    if (a.is_constant()) return scale(b, a.constant).value_or(itself);
    if (b.is_constant()) return scale(a, b.constant).value_or(itself);
    return multiply(t.pool(), a, b).value_or(itself);
  }
  return itself;
}

Term term_of(Pool& pool, const Sum& s) {
  constexpr int64_t least_integer = std::numeric_limits<int64_t>::min();
  Term out;
  for (const auto& [atom, coefficient] : s.parts) {
    const bool subtract = out && coefficient < 0 && coefficient != least_integer;
    const int64_t c = subtract ? -coefficient : coefficient;
    const Term part = c == 1 ? atom : pool.constant(c) * atom;
    out = !out ? part : subtract ? out - part : out + part;
  }
  if (!out) return pool.constant(s.constant);
  if (s.constant == 0) return out;
  return s.constant < 0 && s.constant != least_integer ? out - -s.constant : out + s.constant;
}

Facts facts_of_sum(const Sum& s) {
  Facts out = facts_constant(s.constant);
  for (const Part& p : s.parts)
    out = facts_add(out, facts_multiply(p.atom->facts, facts_constant(p.coefficient)));
  return out;
}

int64_t weight(const Sum& s) {
  int64_t out = 0;
  for (const Part& p : s.parts) out += p.atom->size;
  return out;
}

}  // namespace tessera::term
