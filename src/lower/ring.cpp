#include "lower/ring.h"

#include <algorithm>
#include <bit>
#include <set>

#include "lower/walk.h"

namespace tessera::lower {
namespace {

using term::Op;

bool is_of_ring(Term t) {
  if (t->op != Op::divide && t->op != Op::remainder) return false;
  const Term by = t->args[1];
  return by->op == Op::constant && by->value > 1 &&
         !std::has_single_bit(static_cast<uint64_t>(by->value));
}

/// The symbols that have their meaning inside the loop alone.
std::set<const term::Symbol*> bound_inside(const core::For& loop) {
  std::set<const term::Symbol*> out;
  for_each_op(loop.body, [&](const core::Op& op) {
    if (const auto* const l = op.as<core::For>()) {
      out.insert(l->counter->symbol);
      for (const core::Carried& c : l->carried) out.insert(c.symbol->symbol);
    }
    if (const auto* const c = op.as<core::Compute>(); c != nullptr && c->element)
      out.insert(c->element->symbol);
  });
  return out;
}

/// base + counter, where nothing of base changes in the loop.
bool counts_by_one(const term::Sum& use, Term counter,
                   const std::set<const term::Symbol*>& inside) {
  bool found = false;
  for (const term::Part& p : use.parts) {
    if (p.atom == counter) {
      found = p.coefficient == 1;
      if (!found) return false;
      continue;
    }
    if (term::any_node(p.atom,
                       [&](Term n) { return n == counter || inside.count(n->symbol) != 0; }))
      return false;
  }
  return found;
}

class Finder {
 public:
  explicit Finder(const core::For& loop) : loop_(loop), inside_(bound_inside(loop)) {}

  void look(Term t) {
    if (!seen_.insert(t.node()).second) return;
    for (const Term a : t->args) look(a);
    if (is_of_ring(t)) add(t);
  }
  std::vector<Ring> rings;

 private:
  void add(Term t) {
    const term::Sum use = term::sum_of(t->args[0]);
    if (!counts_by_one(use, loop_.counter, inside_)) return;
    const int64_t slots = t->args[1]->value;
    auto found = std::find_if(rings.begin(), rings.end(),
                              [&](const Ring& r) { return r.slots == slots && r.use == use; });
    if (found == rings.end()) found = rings.insert(rings.end(), begun(use, slots));
    (t->op == Op::remainder ? found->slot : found->round).push_back(t);
  }

  Ring begun(const term::Sum& use, int64_t slots) const {
    term::Sum base = use;
    std::erase_if(base.parts, [&](const term::Part& p) { return p.atom == loop_.counter; });
    Term first = term::term_of(loop_.counter.pool(), base);
    if (loop_.lower->op != Op::constant || loop_.lower->value != 0) first = first + loop_.lower;
    return {use, slots, {}, {}, floor_mod(first, slots), floor_div(first, slots)};
  }

  const core::For& loop_;
  std::set<const term::Symbol*> inside_;
  std::set<const term::Node*> seen_;
};

bool contains(const std::vector<Term>& all, Term t) {
  return std::find(all.begin(), all.end(), t) != all.end();
}

}  // namespace

std::vector<Ring> rings_of(const core::For& loop, const std::vector<Term>& terms) {
  if (loop.unroll || loop.step->op != Op::constant || loop.step->value != 1) return {};
  Finder finder(loop);
  for (const Term t : terms)
    if (t) finder.look(t);
  return std::move(finder.rings);
}

bool has_variable(const std::vector<Ring>& rings, Term t) {
  return std::any_of(rings.begin(), rings.end(),
                     [&](const Ring& r) { return contains(r.slot, t) || contains(r.round, t); });
}

}  // namespace tessera::lower
