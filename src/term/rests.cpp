// Parameters under // and %: period * quotient + rest.
#include <map>
#include <numeric>
#include <set>

#include "term/separate.h"

namespace tessera::term {
namespace {

bool is_open(Term leaf) {
  return (leaf->op == Op::parameter || leaf->op == Op::counter) && !is_walked(leaf);
}

// By open leaf, the least common multiple of the constants that divide something with it; 0: beyond
// `most`.
void gather(Term t, int64_t inside, int64_t most, std::set<std::pair<const Node*, int64_t>>& seen,
            std::map<const Node*, int64_t>& periods) {
  if (!seen.emplace(t.node(), inside).second) return;
  if (is_open(t) && inside != 1) {
    int64_t& period = periods.emplace(t.node(), 1).first->second;
    period = inside == 0 || period == 0 ? 0 : std::lcm(period, inside);
    if (period > most) period = 0;
  }
  const bool divides =
      (t->op == Op::divide || t->op == Op::remainder) && t->args[1]->op == Op::constant;
  int64_t within = inside;
  if (divides) within = inside == 0 || t->args[1]->value > most ? 0 : inside * t->args[1]->value;
  if (within > most) within = 0;
  for (Term a : t->args) gather(a, within, most, seen, periods);
}

Term replaced(Term t, const std::map<const Node*, Term>& by, std::map<const Node*, Term>& done) {
  if (const auto it = by.find(t.node()); it != by.end()) return it->second;
  if (t->args.empty()) return t;
  if (const auto it = done.find(t.node()); it != done.end()) return it->second;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(replaced(a, by, done));
  Pool& pool = t.pool();
  Result<Term> made = t->op == Op::read ? pool.read(t->symbol, args) : pool.make(t->op, args);
  const Term out = made ? *made : t;
  done[t.node()] = out;
  return out;
}

Result<Term> split_leaf(Pool& pool, Term leaf, int64_t period) {
  const Facts& f = leaf->symbol->facts;
  Bounds bounds;
  if (f.lower) bounds.lower = pool.constant(floor_quotient(*f.lower, period));
  if (f.upper) {
    const auto end = narrow(Wide{floor_quotient(*f.upper, period)} + 1);
    if (end) bounds.upper = pool.constant(*end);
  }
  const std::string& name = leaf->symbol->name;
  TESSERA_TRY(quotient,
              pool.derive(fmt::format("{}.quotient.{}", name, period), Op::parameter, bounds));
  const int64_t step = std::gcd(std::max<int64_t>(f.modulus, 1), period);
  if (step == period) return quotient * period + floor_remainder(f.residue, period);
  const Bounds rests{pool.constant(0), pool.constant(period / step)};
  TESSERA_TRY(rest, pool.derive(fmt::format("{}.rest.{}", name, period), Op::coordinate, rests));
  return quotient * period + rest * step + floor_remainder(f.residue, step);
}

}  // namespace

Term with_rests(Term t, const Effort& effort) {
  std::map<const Node*, int64_t> periods;
  std::set<std::pair<const Node*, int64_t>> seen;
  gather(t, 1, effort.period, seen, periods);
  std::map<const Node*, Term> by;
  for (const auto& [leaf, period] : periods) {
    if (period < 2) continue;
    Result<Term> apart = split_leaf(t.pool(), Term(leaf), period);
    if (apart) by[leaf] = *apart;
  }
  std::map<const Node*, Term> done;
  return by.empty() ? t : replaced(t, by, done);
}

}  // namespace tessera::term
