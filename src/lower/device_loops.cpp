// Loops of the core as loops of C++: in one, unrolled by hand, with the first turn apart, or in
// two.
#include <set>

#include "lower/codes.h"
#include "lower/device.h"
#include "lower/walk.h"

namespace tessera::lower {

using core::Op;

namespace {

/// Products that run on behind their issue.
bool has_products(const core::Body& body) {
  bool product = false;
  for_each_op(body, [&](const Op& op) {
    const auto* const i = op.as<core::Issue>();
    for (std::size_t o = 0; i != nullptr && o < i->form->operands.size(); ++o)
      product = product || i->form->effects.locked_until(i->form->operands[o].name) ==
                               arch::Completion::wgmma_group;
  });
  return product;
}

}  // namespace

/// A product that waits for the first turn to be over: where such a loop is written as one,
/// accumulators are in flight on one of two ways, and ptxas gives up their overlap.
bool Device::first_differs(const core::For& l) const {
  if (l.unroll || l.lower->op != term::Op::constant) return false;
  for (const Op& op : l.body) {
    const auto* const branch = op.as<core::If>();
    if (branch != nullptr && branch->condition == term::less(l.lower, l.counter) &&
        has_products(branch->body))
      return true;
  }
  return false;
}

/// The first turn, with its counter a constant of C++: conditions on it fall away.
void Device::write_first(const core::For& l, const std::string& upper) {
  const Expressions::Named outside = expressions_.named();
  const bool always = (l.upper - l.lower)->facts.lower.value_or(0) > 0;
  const std::string name = names_.claim(l.counter->symbol->name);
  if (always)
    text_.block();
  else
    text_.open("if ({} < {})", expressions_.text(l.lower), upper);
  text_.line("constexpr {} {} = {};", expressions_.type_of(l.counter), name, l.lower->value);
  expressions_.name(l.counter, name);
  in_text_.insert(l.counter->symbol);
  write(l.body, &l);
  in_text_.erase(l.counter->symbol);
  advance_rings(l);
  text_.close();
  expressions_.restore(outside);
}

/// The branch of a loop that is taken in its first turns, `if k < below`, or in these and in its
/// last ones, `if k < below or from <= k`, where nothing of the bounds changes in the loop. A loop
/// with products is written as two or three then, since ptxas moves nothing over a branch in it:
/// not the products' issue, nor what runs while they do.
Device::Ends Device::ends_of_branch(const core::For& l) const {
  if (l.unroll || !has_products(l.body)) return {};
  std::set<const term::Symbol*> inside = {l.counter->symbol};
  for_each_op(l.body, [&](const Op& op) {
    if (const auto* const inner = op.as<core::For>()) {
      inside.insert(inner->counter->symbol);
      for (const core::Carried& c : inner->carried) inside.insert(c.symbol->symbol);
    }
  });
  for (const core::Carried& c : l.carried) inside.insert(c.symbol->symbol);
  const auto stays = [&](Term bound) {
    return !term::any_node(bound, [&](Term n) { return inside.count(n->symbol) != 0; });
  };
  for (const Op& op : l.body) {
    const auto* const branch = op.as<core::If>();
    if (branch == nullptr) continue;
    const Term condition = branch->condition;
    const bool both = condition->op == term::Op::logical_or;
    const Term first = both ? condition->args[0] : condition;
    if (first->op != term::Op::less || first->args[0] != l.counter || !stays(first->args[1]))
      continue;
    if (!both) return {condition, first->args[1], {}};
    const Term last = condition->args[1];
    if (last->op == term::Op::less_equal && last->args[1] == l.counter && stays(last->args[0]))
      return {condition, first->args[1], last->args[0]};
  }
  return {};
}

void Device::write(const core::For& l) {
  apart_ = apart_ || apart_after(kernel_, l.body, apart_);
  if (l.unroll && (l.lower->op != term::Op::constant || l.upper->op != term::Op::constant ||
                   l.step->op != term::Op::constant))
    return refuse(fail(unsupported, "the loop over `{}` is unrolled, and has no constant bounds",
                       l.counter->symbol->name));
  bool in_text = false;
  for_each_op(l.body, [&](const Op& op) {
    const auto* const i = op.as<core::Issue>();
    for (std::size_t o = 0; i != nullptr && o < i->arguments.size(); ++o)
      if (const auto* const v = std::get_if<core::Integers>(&i->arguments[o]))
        in_text = in_text || (o < i->form->operands.size() && !v->values.empty() &&
                              i->form->operands[o].kind == arch::OperandKind::immediate &&
                              term::any_node(v->values[0], [&](Term n) { return n == l.counter; }));
  });
  if (l.unroll && in_text) return unroll(l);
  const Expressions::Named outside = expressions_.named();
  const std::string type = expressions_.type_of(l.counter);
  const std::string name = names_.claim(l.counter->symbol->name);
  const std::string lower = expressions_.text(l.lower), upper = expressions_.operand(l.upper);
  const std::string step = l.step->op == term::Op::constant && l.step->value == 1
                               ? "++" + name
                               : fmt::format("{} += {}", name, expressions_.text(l.step));
  begin_rings(l);
  begin_sums(l);
  const bool apart = first_differs(l);
  if (apart) write_first(l, upper);
  expressions_.name(l.counter, name);
  const std::string from = apart ? expressions_.text(l.lower + l.step) : lower;
  const Ends ends = ends_of_branch(l);
  if (!ends.condition) {
    write_loop(l, fmt::format("{} {} = {}; {} < {}; {}", type, name, from, name, upper, step));
  } else {
    text_.line("{} {} = {};", type, name, from);
    const auto turns_below = [&](Term bound, bool taken) {
      known_[ends.condition.node()] = taken;
      write_loop(l, fmt::format("; {} < {} && {}; {}", name, upper,
                                expressions_.text(term::less(l.counter, bound)), step));
    };
    turns_below(ends.below, true);
    if (ends.from) turns_below(ends.from, false);
    known_[ends.condition.node()] = static_cast<bool>(ends.from);
    write_loop(l, fmt::format("; {} < {}; {}", name, upper, step));
    known_.erase(ends.condition.node());
  }
  expressions_.restore(outside);
}

void Device::begin_sums(const core::For& l) {
  for (const core::Carried& c : l.carried) {
    const std::string name = names_.claim(c.symbol->symbol->name);
    text_.line("{} {} = 0;", expressions_.type_of(c.symbol), name);
    expressions_.name(c.symbol, name);
  }
}

void Device::add_to_sums(const core::For& l) {
  for (const core::Carried& c : l.carried)
    text_.line("{} += {};", expressions_.operand(c.symbol), expressions_.text(c.amount));
}

void Device::write_loop(const core::For& l, const std::string& head) {
  text_.raw(l.unroll ? "#pragma unroll" : "#pragma unroll 1");
  text_.open("for ({})", head);
  if (l.unroll) in_text_.insert(l.counter->symbol);
  flight_.forget();
  write(l.body, &l);
  flight_.forget();
  in_text_.erase(l.counter->symbol);
  advance_rings(l);
  text_.close();
}

/// Once for each value of the counter, which is then a constant of C++.
void Device::unroll(const core::For& l) {
  const Expressions::Named outside = expressions_.named();
  in_text_.insert(l.counter->symbol);
  for (int64_t i = l.lower->value; i < l.upper->value; i += l.step->value) {
    const std::string name = names_.claim(l.counter->symbol->name);
    text_.block();
    text_.line("constexpr {} {} = {};", expressions_.type_of(l.counter), name, i);
    expressions_.name(l.counter, name);
    write(l.body);
    text_.close();
  }
  in_text_.erase(l.counter->symbol);
  expressions_.restore(outside);
}

}  // namespace tessera::lower
