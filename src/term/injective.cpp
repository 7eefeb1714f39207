// is_injective: digits of different weight, else a walk that looks for a value twice.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "term/bound.h"
#include "term/query.h"
#include "term/refute.h"

namespace tessera::term {
namespace {

bool depends(Term t, const std::vector<Term>& on) {
  return any_node(t, [&](Term n) { return std::find(on.begin(), on.end(), n) != on.end(); });
}

// s = moving + still, by whether an atom depends on the coordinates.
std::pair<Sum, Sum> taken_apart(const Sum& s, const std::vector<Term>& coordinates) {
  Sum moving, still;
  still.constant = s.constant;
  for (const Part& p : s.parts) (depends(p.atom, coordinates) ? moving : still).parts.push_back(p);
  return {moving, still};
}

// An atom that tells a coordinate, given those already known: the coordinate itself, or the xor of
// it with known ones.
bool tells(Term atom, Term coordinate, const std::vector<Term>& unknown) {
  if (atom == coordinate) return true;
  if (atom->op != Op::bit_xor) return false;
  for (int side = 0; side < 2; ++side) {
    const Term mine = atom->args[side], others = atom->args[1 - side];
    if (!depends(others, unknown) && tells(mine, coordinate, unknown)) return true;
  }
  return false;
}

// The value tells every atom (weights grow beyond the sum of what is below them), and the atoms
// tell every coordinate.
bool by_digits(const Sum& moving, std::vector<Term> coordinates) {
  std::vector<Part> parts = moving.parts;
  const auto size = [](const Part& p) {
    return p.coefficient < 0 ? -Wide{p.coefficient} : Wide{p.coefficient};
  };
  std::sort(parts.begin(), parts.end(),
            [&](const Part& a, const Part& b) { return size(a) < size(b); });
  Wide reach = 0;
  for (const Part& p : parts) {
    const Facts& f = p.atom->facts;
    if (!f.lower || !f.upper || size(p) <= reach) return false;
    reach += size(p) * (Wide{*f.upper} - *f.lower);
    if (reach > Wide{1} << 100) return false;
  }
  for (bool found = true; found && !coordinates.empty();) {
    found = false;
    for (std::size_t i = 0; i < coordinates.size() && !found; ++i) {
      for (const Part& p : parts) found = found || tells(p.atom, coordinates[i], coordinates);
      if (found) coordinates.erase(coordinates.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return coordinates.empty();
}

// Two points with equal values in all outputs: the least first point, then the least second.
std::optional<std::pair<int64_t, int64_t>> twice(const std::vector<std::vector<int64_t>>& values,
                                                 int64_t count) {
  std::vector<int64_t> order(count);
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  const auto compare = [&](int64_t a, int64_t b) {
    for (const auto& v : values)
      if (v[a] != v[b]) return v[a] < v[b] ? -1 : 1;
    return 0;
  };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int c = compare(a, b);
    return c != 0 ? c < 0 : a < b;
  });
  std::optional<std::pair<int64_t, int64_t>> found;
  for (int64_t i = 1; i < count; ++i) {
    if (compare(order[i - 1], order[i]) != 0) continue;
    if (!found || order[i - 1] < found->first) found = {order[i - 1], order[i]};
    while (i + 1 < count && compare(order[i], order[i + 1]) == 0) ++i;
  }
  return found;
}

struct Collision {
  bool decided = false;
  std::string reason;
  std::optional<std::pair<Assignment, Assignment>> points;
};

// Walks the coordinates with all else at the values of `rest`.
Collision collision(const std::vector<Term>& outputs, const std::vector<Term>& coordinates,
                    const Assignment& rest, const Effort& effort) {
  constexpr int64_t sorting = 24;  // operations a point that the sort costs
  Program program(outputs);
  std::vector<Axis> axes;
  for (Term leaf : symbols_of(outputs)) {
    const auto it = rest.symbols.find(leaf->symbol->name);
    const bool asked = std::find(coordinates.begin(), coordinates.end(), leaf) != coordinates.end();
    if (!asked && it != rest.symbols.end()) axes.push_back({leaf, it->second, 1, 1});
  }
  for (Term c : coordinates) axes.push_back(axis_of(c));
  const auto total = points(axes);
  if (!total || *total > effort.operations / (program.operations() + sorting))
    return {false, "too many points"};
  std::vector<std::vector<int64_t>> values(outputs.size());
  for (auto& v : values) v.reserve(*total);
  const Walk ended = walk(program, axes, [&](int64_t, int count) {
    for (std::size_t k = 0; k < outputs.size(); ++k)
      values[k].insert(values[k].end(), program.output(k).begin(),
                       program.output(k).begin() + count);
    return true;
  });
  if (ended == Walk::overflowed) return {false, "a value does not fit 64 bits"};
  Collision out{true, fmt::format("enumeration of {} points", *total)};
  if (const auto pair = twice(values, *total)) {
    Assignment a = rest, b = rest;
    const std::vector<int64_t> first = point(axes, pair->first), second = point(axes, pair->second);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      a.symbols[axes[i].leaf->symbol->name] = first[i];
      b.symbols[axes[i].leaf->symbol->name] = second[i];
    }
    out.points = {a, b};
  }
  return out;
}

// moving = symbol * high + low with 0 <= low < symbol: the value tells high and low.
std::optional<std::vector<Term>> columns(Pool& pool, const Sum& moving) {
  const Separated parts = separate(pool, moving);
  if (parts.symbols.empty()) return std::vector<Term>{parts.constant};
  if (parts.symbols.size() > 1 || parts.symbols[0].mixed) return std::nullopt;
  const Sum low = sum_of(parts.constant);
  if (!proves_at_least(pool, low, 0) || !proves_less(pool, low, sum_of(parts.symbols[0].symbol)))
    return std::nullopt;
  return std::vector<Term>{parts.symbols[0].coefficient, parts.constant};
}

Verdict refuted(Collision&& c) {
  return {Outcome::refuted, "", std::move(c.points->first), std::move(c.points->second)};
}

// Two admissible points of t itself with one value.
bool replays(Term t, const Collision& c) {
  const Result<int64_t> a = evaluate(t, c.points->first), b = evaluate(t, c.points->second);
  const std::vector<Term> symbols = symbols_of({t});
  return a && b && *a == *b && admissible(symbols, c.points->first) &&
         admissible(symbols, c.points->second);
}

// All symbols of t and the coordinates, which t need not have, at their first admissible values.
std::optional<Assignment> first_values(Term t, const std::vector<Term>& coordinates) {
  std::vector<Term> terms = coordinates;
  terms.push_back(t);
  return complete(symbols_of(terms), {});
}

}  // namespace

Verdict is_injective(Term t, const std::vector<Term>& coordinates, const Effort& effort) {
  Pool& pool = t.pool();
  for (Term c : coordinates)
    if (!c->leaf() || !is_walked(c))
      return {Outcome::unknown, fmt::format("`{}` is no coordinate", to_string(c))};
  const Term normal = simplify(t);
  const auto [moving, still] = taken_apart(sum_of(normal), coordinates);
  if (by_digits(moving, coordinates)) return {Outcome::proved, "digits of different weight"};
  const std::optional<Assignment> rest = first_values(t, coordinates);
  if (!rest) return {Outcome::unknown, "no admissible assignment was found"};

  std::string why = "the value depends on symbols beside the coordinates";
  if (const auto outputs = columns(pool, moving)) {
    std::vector<Term> inner;
    for (const Axis& a : axes_of(*outputs)) inner.push_back(a.leaf);
    const bool alone = std::all_of(inner.begin(), inner.end(), [&](Term l) {
      return std::find(coordinates.begin(), coordinates.end(), l) != coordinates.end();
    });
    Collision c = collision(*outputs, coordinates, *rest, effort);
    if (c.decided && alone && !c.points) return {Outcome::proved, c.reason};
    if (c.decided && c.points && replays(t, c)) return refuted(std::move(c));
    if (!c.decided) why = c.reason;
  }
  if (!any_node(normal, [](Term n) { return n->op == Op::read; })) {
    Collision c = collision({normal}, coordinates, *rest, effort);
    if (c.decided && c.points && replays(t, c)) return refuted(std::move(c));
  }
  return {Outcome::unknown, std::move(why)};
}

}  // namespace tessera::term
