#include "check/seen_keys.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

using term::Op;
using Node = Condition::Node;

/// One of them, told once; one that is always true alone.
Any tidy(Any any) {
  for (const Bound& b : any)
    if (b.term < 0) return {Bound{}};
  std::sort(any.begin(), any.end());
  any.erase(std::unique(any.begin(), any.end()), any.end());
  return any;
}

/// Of the tree from `i` on.
// NOLINTNEXTLINE(misc-no-recursion): conditions nest
std::optional<Any> any_of(const std::vector<Node>& nodes, int i, const Values& values) {
  const Node& n = nodes[static_cast<std::size_t>(i)];
  if (n.kind == Node::Kind::truth) return n.value ? Any{Bound{}} : Any{};
  if (n.kind == Node::Kind::bound) {
    const std::optional<int64_t> off = n.off.empty() ? 0 : n.off(values);
    if (!off) return std::nullopt;
    const int64_t rest = term::floor_quotient(n.rest + *off, n.scale);
    if (n.term < 0) return rest >= 0 ? Any{Bound{}} : Any{};
    return Any{{n.term, n.sign > 0, n.sign > 0 ? -rest : rest}};
  }
  std::optional<Any> left = any_of(nodes, n.left, values), right = any_of(nodes, n.right, values);
  if (!left || !right) return std::nullopt;
  if (n.kind == Node::Kind::either) {
    left->insert(left->end(), right->begin(), right->end());
    return tidy(std::move(*left));
  }
  const Any always = {Bound{}};
  if (*left == always || right->empty() || *left == *right) return right;
  if (*right == always || left->empty()) return left;
  return std::nullopt;
}

/// Both conditions, or either; -1 where one is none.
int pair(Node::Kind kind, int left, int right, std::vector<Node>& out) {
  if (left < 0 || right < 0) return -1;
  Node n;
  n.kind = kind;
  n.left = left;
  n.right = right;
  out.push_back(std::move(n));
  return static_cast<int>(out.size()) - 1;
}

}  // namespace

SeenKeys::SeenKeys(const core::Kernel& kernel, std::vector<Term> places, Term corner)
    : kernel_(kernel), places_(std::move(places)), corner_(corner) {
  for (const term::Part& p : term::sum_of(term::simplify(corner)).parts)
    of_corner_.push_back(p.atom);
  masks_.emplace_back();
  known_masks_.emplace(Mask(), 0);
}

int SeenKeys::term_number(Term t) {
  const auto [found, is_new] = known_terms_.try_emplace(t.node(), static_cast<int>(terms_.size()));
  if (is_new) terms_.push_back(t);
  return found->second;
}

/// difference + rest >= 0; -1 where it is no such bound.
int SeenKeys::bound(Term difference, int64_t rest, std::vector<Node>& out) {
  const term::Sum sum = term::sum_of(term::simplify(difference));
  Node n{.kind = Node::Kind::bound, .rest = rest + sum.constant};
  term::Sum of_places, others;
  for (const term::Part& part : sum.parts) {
    bool place = true, other = true;
    for (Term s : term::symbols_of({part.atom})) {
      const bool is_place = std::find(places_.begin(), places_.end(), s) != places_.end();
      (is_place ? other : place) = false;
    }
    if (!place && !other) return -1;
    (place ? of_places : others).parts.push_back(part);
  }
  term::Pool& pool = *kernel_.pool;
  n.linear = std::all_of(of_places.parts.begin(), of_places.parts.end(),
                         [](const term::Part& part) { return part.atom->leaf(); });
  if (!of_places.parts.empty()) n.off = Expression(term::term_of(pool, of_places));
  if (!others.parts.empty()) {
    n.scale = 0;
    if (others.parts.front().coefficient < 0) {
      n.sign = -1;
      for (term::Part& part : others.parts) part.coefficient = -part.coefficient;
    }
    for (const term::Part& part : others.parts) n.scale = std::gcd(n.scale, part.coefficient);
    n.scale = std::max<int64_t>(n.scale, 1);
    for (term::Part& part : others.parts) part.coefficient /= n.scale;
    n.term = term_number(term::term_of(pool, others));
  }
  out.push_back(std::move(n));
  return static_cast<int>(out.size()) - 1;
}

/// difference + rest >= 0 without a quotient n // size, where there is one: n // size <= r exactly
/// if n < (r + 1) * size, and n // size >= r exactly if n >= r * size. An invalid term where there
/// is none. Quotients that the block's corner is made of stay.
Term SeenKeys::without_quotient(Term difference, int64_t rest) {
  term::Sum sum = term::sum_of(term::simplify(difference));
  const auto quotient = std::find_if(sum.parts.begin(), sum.parts.end(), [&](const term::Part& p) {
    return p.atom->op == Op::divide && p.atom->args[1]->op == Op::constant &&
           p.atom->args[1]->value > 0 && (p.coefficient == 1 || p.coefficient == -1) &&
           !in_corner(p.atom);
  });
  if (quotient == sum.parts.end()) return {};
  Term n = quotient->atom->args[0];
  const Term size = quotient->atom->args[1];
  const bool below = quotient->coefficient == -1;
  sum.parts.erase(quotient);
  sum.constant += rest;
  const Term r = term::term_of(*kernel_.pool, sum);
  const Term end = below ? (r + 1) * size : kernel_.pool->constant(0) - r * size;
  // The corner is at least 0: max(c, n) is below corner + d where n is, if c is below d.
  const Term beyond = term::simplify(end - corner_);
  if (below && n->op == Op::max && beyond->op == Op::constant)
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      if (n->op == Op::max && n->args[i]->op == Op::constant && n->args[i]->value < beyond->value)
        n = n->args[1 - i];
  return below ? term::less(n, end) : term::less_equal(end, n);
}

bool SeenKeys::in_corner(Term atom) const {
  return std::find(of_corner_.begin(), of_corner_.end(), atom) != of_corner_.end();
}

/// difference + rest >= 0.
// NOLINTNEXTLINE(misc-no-recursion): quotients and choices nest
int SeenKeys::ordered(Term difference, int64_t rest, std::vector<Node>& out) {
  const Term same = without_quotient(difference, rest);
  if (same) return compile(same, false, out);
  // max(a, b) + c >= 0 where a + c >= 0 or b + c >= 0.
  term::Sum sum = term::sum_of(term::simplify(difference));
  for (std::size_t i = 0; i < sum.parts.size(); ++i) {
    const term::Part part = sum.parts[i];
    if ((part.atom->op != Op::max && part.atom->op != Op::min) || in_corner(part.atom)) continue;
    sum.parts.erase(sum.parts.begin() + static_cast<std::ptrdiff_t>(i));
    const Term others = term::term_of(*kernel_.pool, sum);
    const auto with = [&](Term one) {
      return ordered(others + one * kernel_.pool->constant(part.coefficient), rest, out);
    };
    const bool either = (part.atom->op == Op::max) == (part.coefficient > 0);
    return pair(either ? Node::Kind::either : Node::Kind::both, with(part.atom->args[0]),
                with(part.atom->args[1]), out);
  }
  return bound(difference, rest, out);
}

// NOLINTNEXTLINE(misc-no-recursion): conditions nest
int SeenKeys::compile(Term p, bool contrary, std::vector<Node>& out) {
  switch (p->op) {
    case Op::truth: {
      Node n;
      n.value = (p->value != 0) != contrary;
      out.push_back(std::move(n));
      return static_cast<int>(out.size()) - 1;
    }
    case Op::logical_not:
      return compile(p->args[0], !contrary, out);
    case Op::logical_and:
    case Op::logical_or: {
      const int left = compile(p->args[0], contrary, out),
                right = compile(p->args[1], contrary, out);
      const bool both = (p->op == Op::logical_and) != contrary;
      return pair(both ? Node::Kind::both : Node::Kind::either, left, right, out);
    }
    case Op::less:
    case Op::less_equal: {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const Term choice = p->args[side], other = p->args[1 - side];
        if (choice->op != Op::min && choice->op != Op::max) continue;
        // min(a, b) < c where a < c or b < c; the other three the same way.
        const auto with = [&](Term one) {
          return kernel_.pool->must(
              p->op, side == 0 ? std::vector<Term>{one, other} : std::vector<Term>{other, one});
        };
        const int left = compile(with(choice->args[0]), contrary, out),
                  right = compile(with(choice->args[1]), contrary, out);
        const bool either = ((choice->op == Op::min) == (side == 0)) != contrary;
        return pair(either ? Node::Kind::either : Node::Kind::both, left, right, out);
      }
      const int64_t strict = p->op == Op::less ? 1 : 0;
      return contrary ? ordered(p->args[0] - p->args[1], strict - 1, out)
                      : ordered(p->args[1] - p->args[0], -strict, out);
    }
    case Op::equal:
    case Op::not_equal: {
      if (p->args[0]->predicate()) return -1;
      const bool same = (p->op == Op::equal) != contrary;
      const int left = bound(p->args[0] - p->args[1], same ? 0 : -1, out),
                right = bound(p->args[1] - p->args[0], same ? 0 : -1, out);
      return pair(same ? Node::Kind::both : Node::Kind::either, left, right, out);
    }
    default:
      return -1;
  }
}

std::optional<Condition> SeenKeys::compile(Term predicate) {
  if (predicate->op == Op::select && predicate->args[1]->op == Op::constant &&
      predicate->args[2]->op == Op::constant && predicate->args[1]->value != 0 &&
      predicate->args[2]->value == 0)
    predicate = predicate->args[0];
  Condition out;
  if (!predicate->predicate() || compile(predicate, false, out.nodes) < 0 ||
      compile(predicate, true, out.negated) < 0)
    return std::nullopt;
  return out;
}

std::optional<Any> SeenKeys::at(const Condition& c, bool contrary, const Values& values) const {
  const std::vector<Node>& nodes = contrary ? c.negated : c.nodes;
  return any_of(nodes, static_cast<int>(nodes.size()) - 1, values);
}

Term SeenKeys::hides(const Hidden& h, int64_t row, Term key) const {
  const Term number = (key - corner_) * h.by_column + (h.number + h.by_row * row);
  if (h.term < 0) return kernel_.pool->truth(true);
  const Term t = terms_[static_cast<std::size_t>(h.term)];
  return h.at_least ? term::less_equal(number, t) : term::less_equal(t, number);
}

int SeenKeys::condition(Place p) {
  conditions_.push_back(std::move(p));
  return static_cast<int>(conditions_.size()) - 1;
}

int SeenKeys::intern(Mask m) {
  std::sort(m.begin(), m.end());
  m.erase(std::unique(m.begin(), m.end()), m.end());
  const auto [found, is_new] = known_masks_.try_emplace(m, static_cast<int>(masks_.size()));
  if (is_new) masks_.push_back(std::move(m));
  return found->second;
}

int SeenKeys::masked(int mask, const Any& more, const Any& guard) {
  if (more.empty()) return mask;
  Mask m = masks_[static_cast<std::size_t>(mask)];
  m.push_back({more, guard});
  return intern(std::move(m));
}

int SeenKeys::guarded(int mask, int before, const Any& guard) {
  const Mask& old = masks_[static_cast<std::size_t>(before)];
  Mask m;
  for (Entry e : masks_[static_cast<std::size_t>(mask)]) {
    if (std::find(old.begin(), old.end(), e) == old.end()) e.guard = guard;
    m.push_back(std::move(e));
  }
  return intern(std::move(m));
}

Any SeenKeys::hidden_at(int row, int column) const {
  Any out;
  for (const Hidden& h : hidden_) out.push_back(h.at(row, column));
  return out;
}

bool SeenKeys::impossible(const Bound& b) {
  const auto [found, is_new] = impossible_.try_emplace(b, false);
  if (is_new) found->second = term::always(term::logical_not(term(b))).proved();
  return found->second;
}

bool SeenKeys::right(int mask, int row, int column) {
  const Any expected = hidden_at(row, column);
  const Mask& m = masks_[static_cast<std::size_t>(mask)];
  const auto some = [](const Any& any, const Bound& of) {
    return std::any_of(any.begin(), any.end(), [&](const Bound& b) { return b.follows(of); });
  };
  for (const Entry& e : m)
    for (const Bound& b : e.any)
      if (!some(expected, b)) return false;
  return std::all_of(expected.begin(), expected.end(), [&](const Bound& h) {
    return std::any_of(m.begin(), m.end(),
                       [&](const Entry& e) {
                         return some(e.any, h) && (e.guard.empty() || some(e.guard, h));
                       }) ||
           impossible(h);
  });
}

Term SeenKeys::term(const Bound& b) const {
  term::Pool& pool = *kernel_.pool;
  if (b.term < 0) return pool.truth(true);
  const Term t = terms_[static_cast<std::size_t>(b.term)], n = pool.constant(b.number);
  return b.at_least ? term::less_equal(n, t) : term::less_equal(t, n);
}

Term SeenKeys::term(const Any& any) const {
  Term out = kernel_.pool->truth(false);
  for (const Bound& b : any) out = term::logical_or(out, term(b));
  return out;
}

Term SeenKeys::claim(int mask, int row, int column) const {
  Term actual = kernel_.pool->truth(false);
  for (const Entry& e : masks_[static_cast<std::size_t>(mask)]) {
    const Term any = term(e.any);
    actual =
        term::logical_or(actual, e.guard.empty() ? any : term::logical_and(term(e.guard), any));
  }
  const Term expected = term(hidden_at(row, column));
  return term::logical_or(
      term::logical_and(actual, expected),
      term::logical_and(term::logical_not(actual), term::logical_not(expected)));
}

std::string SeenKeys::text(int mask) const {
  std::vector<std::string> out;
  for (const Entry& e : masks_[static_cast<std::size_t>(mask)])
    out.push_back(e.guard.empty()
                      ? to_string(term::simplify(term(e.any)))
                      : fmt::format("({}) where {}", to_string(term::simplify(term(e.any))),
                                    to_string(term::simplify(term(e.guard)))));
  return out.empty() ? "nowhere" : join(out, ", or ");
}

std::string SeenKeys::text(int row, int column) const {
  return hidden_.empty() ? "nowhere" : to_string(term::simplify(term(hidden_at(row, column))));
}

}  // namespace tessera::check
