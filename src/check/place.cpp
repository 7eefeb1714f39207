#include "check/place.h"

#include <algorithm>

#include "term/rules.h"

namespace tessera::check {
namespace {

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void walk(const core::Body& body, const Place& around, std::vector<Place>& out) {
  for (const core::Op& op : body) {
    Place here = around;
    here.op = &op;
    if (const auto* loop = op.as<core::For>()) {
      (loop->unroll ? here.unrolled : here.loops).push_back(loop);
      if (!loop->unroll) here.outside = here.branches.size();
      walk(loop->body, here, out);
    } else if (const auto* branch = op.as<core::If>()) {
      here.branches.push_back(branch);
      walk(branch->body, here, out);
      walk(branch->otherwise, here, out);
    } else if (const auto* elected = op.as<core::Elected>()) {
      walk(elected->body, here, out);
    } else if (const auto* role = op.as<core::Role>()) {
      here.role = role;
      walk(role->body, here, out);
    } else {
      out.push_back(here);
    }
  }
}

// NOLINTNEXTLINE(misc-no-recursion): terms nest
std::optional<int64_t> evaluated(Term t, const Known& known) {
  bool all = true;
  int most = 0;
  term::any_node(t, [&](Term n) {
    if (n->op == term::Op::read) all = false;
    if (n->symbol != nullptr && n->leaf()) {
      all &= known.contains(n.node());
      most = std::max(most, n->symbol->index);
    }
    return false;
  });
  if (!all) return std::nullopt;
  Values values(static_cast<std::size_t>(most) + 1, 0);
  for (const auto& [node, value] : known)
    if (node->symbol->index <= most) values[static_cast<std::size_t>(node->symbol->index)] = value;
  return Expression(t)(values);
}

}  // namespace

std::vector<Place> places(const core::Kernel& kernel) {
  std::vector<Place> out;
  walk(kernel.body, {}, out);
  return out;
}

bool stores_elsewhere(const std::vector<Place>& all, const std::set<const core::Role*>& roles) {
  return std::any_of(all.begin(), all.end(), [&](const Place& p) {
    if (roles.contains(p.role) || p.op->as<core::Issue>() == nullptr) return false;
    const auto& accesses = p.issue().form->effects.accesses;
    return std::any_of(accesses.begin(), accesses.end(), [](const arch::Access& a) {
      return a.space == arch::Space::global && a.action != arch::Action::read;
    });
  });
}

std::optional<int64_t> value_of(Term t, const Known& known) {
  if (t->op == term::Op::constant || t->op == term::Op::truth) return t->value;
  if (const std::optional<int64_t> v = evaluated(t, known)) return v;
  return evaluated(term::simplify(t), known);
}

std::optional<BoxIndex> box_element(const core::Kernel& kernel, const core::TensorMap& map,
                                    int64_t start, int64_t byte) {
  const int64_t size = size_of(kernel[map.tensor].element);
  int64_t at = arch::swizzle_of(map.swizzle)(byte) - start;
  if (at < 0 || at % size != 0) return std::nullopt;
  at /= size;
  BoxIndex out{};
  for (std::size_t i = 0; i < map.box.size() && i < out.size(); ++i) {
    out[i] = at % map.box[i];
    at /= map.box[i];
  }
  if (at != 0) return std::nullopt;
  return out;
}

// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term with_values(Term t, const Known& known) {
  if (const auto found = known.find(t.node()); found != known.end())
    return t.pool().constant(found->second);
  if (t->args.empty() || t->op == term::Op::read) return t;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(with_values(a, known));
  return args == t->args ? t : t.pool().must(t->op, std::move(args));
}

// NOLINTNEXTLINE(misc-no-recursion): terms nest
Term with_term(Term t, Term symbol, Term by) {
  if (t == symbol) return by;
  if (t->args.empty() || t->op == term::Op::read) return t;
  std::vector<Term> args;
  for (Term a : t->args) args.push_back(with_term(a, symbol, by));
  return args == t->args ? t : t.pool().must(t->op, std::move(args));
}

std::vector<Known> turns_of(const std::vector<const core::For*>& unrolled) {
  std::vector<Known> out = {{}};
  for (const core::For* loop : unrolled) {
    std::vector<Known> longer;
    for (const Known& k : out)
      for (int64_t n = loop->lower->value; n < loop->upper->value; n += loop->step->value) {
        longer.push_back(k);
        longer.back()[loop->counter.node()] = n;
      }
    out = std::move(longer);
  }
  return out;
}

}  // namespace tessera::check
