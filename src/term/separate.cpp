#include "term/separate.h"

#include <algorithm>
#include <set>

namespace tessera::term {

bool is_walked(Term leaf) {
  if (leaf->op == Op::coordinate) return true;
  if (leaf->op != Op::counter) return false;
  const Bounds& b = leaf->symbol->bounds;
  return b.lower && b.upper && b.lower->op == Op::constant && b.upper->op == Op::constant;
}

Axis axis_of(Term leaf) {
  const Bounds& b = leaf->symbol->bounds;
  const int64_t first = b.lower->value, end = b.upper->value;
  return {leaf, first, 1, end > first ? narrow(Wide{end} - first).value_or(int64_t{1} << 62) : 0};
}

std::vector<Axis> axes_of(const std::vector<Term>& terms) {
  std::vector<Axis> out;
  for (Term leaf : symbols_of(terms))
    if (is_walked(leaf)) out.push_back(axis_of(leaf));
  return out;
}

bool is_finite(Term t) {
  return !any_node(t, [](Term n) {
    return n->op == Op::read || (n->leaf() && n->symbol != nullptr && !is_walked(n));
  });
}

namespace {

bool has_walked(Term t) {
  return any_node(t, [](Term n) { return n->leaf() && n->symbol != nullptr && is_walked(n); });
}

}  // namespace

Separated separate(Pool& pool, const Sum& s) {
  std::vector<std::pair<Term, Sum>> by_symbol;  // the symbol of the constant part is empty
  const auto at = [&](Term symbol) -> Sum& {
    for (auto& [known, sum] : by_symbol)
      if (known == symbol) return sum;
    return by_symbol.emplace_back(symbol, Sum{}).second;
  };
  at(Term()).constant = s.constant;
  for (const Part& p : s.parts) {
    std::vector<Term> finite, open;
    for (Term f : factors_of(p.atom)) (is_finite(f) ? finite : open).push_back(f);
    Sum& sum = at(open.empty() ? Term() : product_of(pool, open));
    if (finite.empty())
      sum.constant += p.coefficient;
    else
      sum.parts.push_back({product_of(pool, finite), p.coefficient});
  }
  Separated out;
  for (auto& [symbol, sum] : by_symbol) {
    std::sort(sum.parts.begin(), sum.parts.end(),
              [](const Part& a, const Part& b) { return a.atom->id < b.atom->id; });
    const Term coefficient = term_of(pool, sum);
    if (symbol)
      out.symbols.push_back({symbol, coefficient, has_walked(symbol)});
    else
      out.constant = coefficient;
  }
  return out;
}

namespace {

std::string too_many(int64_t points) {
  return fmt::format("{} points are beyond the budget", points);
}

// True if the walk fits the budget; else says why not.
bool affordable(const Program& program, const std::vector<Axis>& axes, const Effort& effort,
                Walked& out) {
  const auto total = points(axes);
  if (total && (*total == 0 || *total <= effort.operations / program.operations())) {
    out.points = *total;
    return true;
  }
  out.reason = total ? too_many(*total) : "the points are beyond 2^62";
  return false;
}

// Walks until see() is false at a point.
void search(Program& program, Walked& out, const std::function<bool(int)>& see) {
  const Walk ended = walk(program, out.axes, [&](int64_t begin, int count) {
    for (int i = 0; i < count; ++i) {
      if (see(i)) continue;
      out.at = point(out.axes, begin + i);
      return false;
    }
    return true;
  });
  out.decided = ended != Walk::overflowed;
  out.holds = ended == Walk::done;
  if (!out.decided) out.reason = "a value does not fit 64 bits";
}

std::vector<Term> coefficients(const Separated& parts) {
  std::vector<Term> out{parts.constant};
  for (const auto& s : parts.symbols) out.push_back(s.coefficient);
  return out;
}

// Groups of parts that share walked leaves.
std::vector<Sum> independent_groups(const Sum& s) {
  struct Group {
    Sum sum;
    std::set<const Node*> leaves;
  };
  std::vector<Group> groups;
  for (const Part& p : s.parts) {
    Group mine{Sum{0, {p}}, {}};
    for (const Axis& a : axes_of({p.atom})) mine.leaves.insert(a.leaf.node());
    std::vector<Group> apart;
    for (Group& g : groups) {
      const bool shared = std::any_of(g.leaves.begin(), g.leaves.end(),
                                      [&](const Node* n) { return mine.leaves.contains(n); });
      if (!shared) {
        apart.push_back(std::move(g));
        continue;
      }
      mine.sum = *add(mine.sum, g.sum);
      mine.leaves.insert(g.leaves.begin(), g.leaves.end());
    }
    apart.push_back(std::move(mine));
    groups = std::move(apart);
  }
  std::vector<Sum> out;
  for (Group& g : groups) out.push_back(std::move(g.sum));
  return out;
}

// finite == 0, its independent groups one by one: it holds if every group is constant and their
// values add up to 0. `low` is the first point of a failure.
Walked equation_by_groups(Pool& pool, const Sum& finite, const std::vector<Axis>& axes,
                          const Effort& effort) {
  Walked out;
  out.axes = axes;
  Wide total = finite.constant;
  std::vector<std::vector<int64_t>>
      failing;  // a point of all axes each: the least at which one group leaves its first value
  for (const Sum& group : independent_groups(finite)) {
    const Term t = term_of(pool, group);
    Program program({t});
    Walked part;
    part.axes = axes_of({t});
    if (!affordable(program, part.axes, effort, out)) return out;
    std::optional<int64_t> first;
    search(program, part, [&](int i) {
      if (!first) first = program.output(0)[i];
      return program.output(0)[i] == *first;
    });
    if (!part.decided) {
      out.reason = part.reason;
      return out;
    }
    total += first.value_or(0);
    if (part.holds) continue;
    std::vector<int64_t> whole;
    for (const Axis& a : axes) {
      const auto it = std::find_if(part.axes.begin(), part.axes.end(),
                                   [&](const Axis& b) { return b.leaf == a.leaf; });
      whole.push_back(it == part.axes.end() ? a.first : part.at[it - part.axes.begin()]);
    }
    failing.push_back(std::move(whole));
  }
  out.decided = true;
  out.holds = total == 0 && failing.empty();
  out.exact = !out.holds;
  if (out.holds) return out;
  out.at = total != 0 ? point(axes, 0) : *std::min_element(failing.begin(), failing.end());
  return out;
}

}  // namespace

Walked walk_equation(Pool& pool, const Sum& s, const Effort& effort) {
  const Separated parts = separate(pool, s);
  std::vector<Axis> axes = axes_of(coefficients(parts));
  if (points(axes) == 0) return {.decided = true, .holds = true, .axes = axes};
  if (parts.symbols.empty()) {
    Walked grouped = equation_by_groups(pool, s, axes, effort);
    grouped.points = points(axes).value_or(0);
    return grouped;
  }
  Walked out;
  out.axes = std::move(axes);
  Program program(coefficients(parts));
  if (!affordable(program, out.axes, effort, out)) return out;
  search(program, out, [&](int i) {
    for (std::size_t k = 0; k <= parts.symbols.size(); ++k)
      if (program.output(k)[i] != 0) return false;
    return true;
  });
  if (!out.decided || out.holds) return out;
  out.decided = false;
  out.reason = fmt::format("`{}` remains", to_string(term_of(pool, s)));
  return out;
}

namespace {

// The least value that the outputs from `first` on have at a point: constant, then the coefficients
// of the symbols.
bool not_negative(const Program& program, std::size_t first, const Separated& parts, int i) {
  Facts least = facts_constant(program.output(first)[i]);
  for (const auto& s : parts.symbols)
    least = facts_add(least,
                      facts_multiply(s.symbol->facts, facts_constant(program.output(++first)[i])));
  return least.at_least(0);
}

}  // namespace

Walked walk_clause(Pool& pool, const std::vector<Sum>& sums, const Effort& effort) {
  std::vector<Separated> literals;
  std::vector<std::size_t> first;
  std::vector<Term> outputs;
  bool finite = true;
  for (const Sum& s : sums) {
    literals.push_back(separate(pool, s));
    first.push_back(outputs.size());
    for (Term c : coefficients(literals.back())) outputs.push_back(c);
    finite &= literals.back().symbols.empty();
  }
  Walked out;
  out.axes = axes_of(outputs);
  if (points(out.axes) == 0) return {.decided = true, .holds = true, .axes = out.axes};
  Program program(outputs);
  if (!affordable(program, out.axes, effort, out)) return out;
  search(program, out, [&](int i) {
    for (std::size_t k = 0; k < literals.size(); ++k)
      if (not_negative(program, first[k], literals[k], i)) return true;
    return false;
  });
  out.exact = out.decided && !out.holds && finite;
  if (!out.decided || out.holds || finite) return out;
  out.decided = false;
  out.reason = "its truth depends on the symbols";
  return out;
}

Walked walk_predicate(Term p, const Effort& effort) {
  Walked out;
  out.axes = axes_of({p});
  if (points(out.axes) == 0) return {.decided = true, .holds = true, .axes = out.axes};
  Program program({p});
  if (!affordable(program, out.axes, effort, out)) return out;
  search(program, out, [&](int i) { return program.output(0)[i] != 0; });
  out.exact = out.decided && !out.holds;
  return out;
}

}  // namespace tessera::term
