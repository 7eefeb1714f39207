#include "core/terms.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace tessera::core {
namespace {

using Visit = std::function<void(Term&)>;

struct Terms {
  const Visit& f;

  void all(std::vector<Term>& terms) const {
    for (Term& t : terms) f(t);
  }
  void one(Term& t) const {
    if (t) f(t);
  }
  void operator()(SharedAt& a) const { all(a.at); }
  void operator()(BarrierAt& a) const { f(a.slot); }
  void operator()(GlobalAt& a) const { all(a.at); }
  void operator()(MapRef&) const {}
  void operator()(Slice& a) const { f(a.first); }
  void operator()(Integers& a) const { all(a.values); }

  void operator()(Issue& i) const {
    for (Argument& a : i.arguments) std::visit(*this, a);
  }
  void operator()(Compute& c) const {
    for (auto& input : c.inputs) {
      if (auto* run = std::get_if<Run>(&input))
        f(run->first);
      else
        one(std::get<Term>(input));
    }
    for (Run& r : c.results) f(r.first);
    one(c.element);
  }
  void operator()(Declare&) const {}
  void operator()(For& l) const {
    for (Term* t : {&l.counter, &l.lower, &l.upper, &l.step}) f(*t);
    for (Carried& c : l.carried) {
      f(c.symbol);
      f(c.amount);
    }
    body(l.body);
  }
  void operator()(If& i) const {
    f(i.condition);
    body(i.body);
    body(i.otherwise);
  }
  void operator()(Elected& e) const { body(e.body); }
  void operator()(Role& r) const {
    f(r.warp);
    body(r.body);
  }
  void operator()(Tag& t) const {
    std::visit(*this, t.at);
    one(t.value);
    all(t.over);
  }
  void operator()(AssertTag& a) const {
    std::visit(*this, a.at);
    if (auto* other = std::get_if<Tagged>(&a.to))
      std::visit(*this, *other);
    else
      f(std::get<Term>(a.to));
    all(a.over);
  }
  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  void body(Body& b) const {
    for (Op& op : b) std::visit(*this, op.node);
  }
};

/// Nodes that a term is made of, with the bounds of its symbols.
// NOLINTNEXTLINE(misc-no-recursion): terms nest
void collect(Term t, std::map<int32_t, Term>& out) {
  if (!out.emplace(t->id, t).second) return;
  for (const Term a : t->args) collect(a, out);
  if (t->symbol == nullptr) return;
  for (const Term b : {t->symbol->bounds.lower, t->symbol->bounds.upper})
    if (b) collect(b, out);
}

Term made(Result<Term> t) {
  if (!t) throw std::logic_error("a term of a kernel: " + t.error().message);
  return *t;
}

}  // namespace

void for_each_term(Kernel& kernel, const Visit& f) {
  const Terms terms{f};
  Coordinates& at = kernel.at;
  for (Term* t : {&at.lane, &at.warp, &at.block, &at.blocks, &at.rank, &at.multiprocessors}) f(*t);
  terms.all(kernel.parameters);
  f(kernel.grid);
  for (Tensor& t : kernel.tensors) {
    terms.all(t.extents);
    terms.all(t.strides);
  }
  terms.body(kernel.body);
}

Kernel in_own_pool(const Kernel& kernel) {
  Kernel out = kernel;
  std::map<int32_t, Term> nodes;  // in the order of their making
  for_each_term(out, [&](Term& t) { collect(t, nodes); });
  const auto pool = std::make_shared<term::Pool>();
  std::map<const term::Node*, Term> known;
  const auto same = [&](Term t) { return t ? known.at(t.node()) : Term(); };
  for (const auto& [id, t] : nodes) {
    Term& to = known[t.node()];
    if (t->op == term::Op::constant) {
      to = pool->constant(t->value);
    } else if (t->op == term::Op::truth) {
      to = pool->truth(t->value != 0);
    } else if (t->op == term::Op::coordinate) {
      to = made(pool->coordinate(t->symbol->name, t->symbol->bounds.upper->value));
    } else if (t->op == term::Op::counter) {
      to = made(pool->counter(t->symbol->name, same(t->symbol->bounds.lower),
                              same(t->symbol->bounds.upper)));
    } else if (t->op == term::Op::parameter) {
      const term::Bounds& b = t->symbol->bounds;
      to = made(
          pool->parameter(t->symbol->name, {same(b.lower), same(b.upper), b.modulus, b.residue}));
    } else if (t->op == term::Op::read) {
      return kernel;  // reads a memory that a kernel does not have: the verifier's business
    } else {
      std::vector<Term> args;
      for (const Term a : t->args) args.push_back(same(a));
      to = pool->must(t->op, std::move(args));
    }
  }
  for_each_term(out, [&](Term& t) { t = same(t); });
  out.pool = pool;
  return out;
}

}  // namespace tessera::core
