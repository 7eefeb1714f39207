// Loops of the core as loops of C++: in one, unrolled by hand, or with the first turn apart.
#include "lower/codes.h"
#include "lower/device.h"
#include "lower/walk.h"

namespace tessera::lower {

using core::Op;

/// A product that waits for the first turn to be over: where such a loop is written as one,
/// accumulators are in flight on one of two ways, and ptxas gives up their overlap.
bool Device::first_differs(const core::For& l) const {
  if (l.unroll || l.lower->op != term::Op::constant) return false;
  for (const Op& op : l.body) {
    const auto* const branch = op.as<core::If>();
    if (branch == nullptr || branch->condition != term::less(l.lower, l.counter)) continue;
    bool product = false;
    for_each_op(branch->body, [&](const Op& inner) {
      const auto* const i = inner.as<core::Issue>();
      for (std::size_t o = 0; i != nullptr && o < i->form->operands.size(); ++o)
        product = product || i->form->effects.locked_until(i->form->operands[o].name) ==
                                 arch::Completion::wgmma_group;
    });
    if (product) return true;
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
  write(l.body);
  in_text_.erase(l.counter->symbol);
  advance_rings(l);
  text_.close();
  expressions_.restore(outside);
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
  const bool apart = first_differs(l);
  if (apart) write_first(l, upper);
  expressions_.name(l.counter, name);
  text_.raw(l.unroll ? "#pragma unroll" : "#pragma unroll 1");
  text_.open("for ({} {} = {}; {} < {}; {})", type, name,
             apart ? expressions_.text(l.lower + l.step) : lower, name, upper, step);
  if (l.unroll) in_text_.insert(l.counter->symbol);
  flight_.forget();
  write(l.body);
  flight_.forget();
  in_text_.erase(l.counter->symbol);
  advance_rings(l);
  text_.close();
  expressions_.restore(outside);
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
