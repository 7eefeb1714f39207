// The keys that a meaning hides, as bounds that are linear in the row and the key: read from its
// terms, with symbols for both, so that they hold for all rows and keys.
#include <algorithm>
#include <fmt/format.h>

#include "check/seen_keys.h"

namespace tessera::check {
namespace {

using Node = Condition::Node;

/// The tree's bounds of which one holds, or `always`; nothing where some have to hold together.
struct Alternatives {
  bool always = false;
  std::vector<const Node*> bounds;
};
// NOLINTNEXTLINE(misc-no-recursion): conditions nest
std::optional<Alternatives> alternatives(const std::vector<Node>& nodes, int i) {
  const Node& n = nodes[static_cast<std::size_t>(i)];
  if (n.kind == Node::Kind::truth) return Alternatives{.always = n.value, .bounds = {}};
  if (n.kind == Node::Kind::bound && n.term < 0 && n.off.empty())
    return Alternatives{.always = n.rest >= 0, .bounds = {}};
  if (n.kind == Node::Kind::bound) return Alternatives{.always = false, .bounds = {&n}};
  std::optional<Alternatives> left = alternatives(nodes, n.left),
                              right = alternatives(nodes, n.right);
  if (!left || !right) return std::nullopt;
  const auto never = [](const Alternatives& a) { return !a.always && a.bounds.empty(); };
  if (n.kind == Node::Kind::both) {
    if (left->always || never(*right)) return right;
    if (right->always || never(*left)) return left;
    return std::nullopt;
  }
  left->always |= right->always;
  left->bounds.insert(left->bounds.end(), right->bounds.begin(), right->bounds.end());
  return left;
}

}  // namespace

/// A bound of a row and a key, by the column of the key in a turn's block. Nothing where it is not
/// linear, or where its number would be rounded.
std::optional<SeenKeys::Hidden> SeenKeys::hidden_by(const Node& n, Term row, Term key) {
  if (!n.linear || n.scale != 1) return std::nullopt;
  const auto by = [&](Term place) -> std::optional<int64_t> {
    if (n.off.empty()) return 0;
    Values values(static_cast<std::size_t>(std::max(row->symbol->index, key->symbol->index)) + 1);
    values[static_cast<std::size_t>(place->symbol->index)] = 1;
    return n.off(values);
  };
  const std::optional<int64_t> by_row = by(row), by_key = by(key);
  if (!by_row || !by_key) return std::nullopt;
  // sign * term + rest + by_row * row + by_key * (corner + column) >= 0.
  const Term rest =
      n.term < 0 ? kernel_.pool->constant(0) : terms_[static_cast<std::size_t>(n.term)] * n.sign;
  std::vector<Node> made;
  if (bound(rest + corner_ * *by_key, n.rest, made) < 0) return std::nullopt;
  const Node& at_corner = made.back();
  if (at_corner.term < 0 || at_corner.scale != 1 || !at_corner.off.empty()) return std::nullopt;
  const bool at_least = at_corner.sign > 0;
  const int64_t sign = at_least ? -1 : 1;
  return Hidden{at_corner.term, at_least, sign * at_corner.rest, sign * *by_row, sign * *by_key};
}

std::optional<std::vector<SeenKeys::Hidden>> SeenKeys::hidden(
    int64_t rows, const std::function<Term(Term, Term)>& seen) {
  term::Pool& pool = *kernel_.pool;
  const Term zero = pool.constant(0);
  const Result<Term> row = pool.derive(fmt::format("row_of_{}", rows), term::Op::coordinate,
                                       {.lower = zero, .upper = pool.constant(rows)}),
                     key = pool.derive("key_from_0", term::Op::parameter, {.lower = zero});
  const Term predicate = row && key ? seen(*row, *key) : Term();
  if (!predicate) return std::nullopt;
  const std::vector<Term> places = places_;
  places_.insert(places_.end(), {*row, *key});
  std::vector<Node> nodes;
  const int root = compile(predicate, true, nodes);
  places_ = places;
  const auto any = root < 0 ? std::nullopt : alternatives(nodes, root);
  if (!any || any->always) return std::nullopt;
  std::vector<Hidden> out;
  for (const Node* n : any->bounds) {
    const std::optional<Hidden> h = hidden_by(*n, *row, *key);
    if (!h) return std::nullopt;
    if (std::find(out.begin(), out.end(), *h) == out.end()) out.push_back(*h);
  }
  return out;
}

}  // namespace tessera::check
