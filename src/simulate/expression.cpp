#include "simulate/expression.h"

#include <algorithm>
#include <map>

namespace tessera::simulate {
namespace {

using term::Op;

int64_t add(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) throw Overflow{};
  return out;
}
int64_t subtract(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_sub_overflow(a, b, &out)) throw Overflow{};
  return out;
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) throw Overflow{};
  return out;
}
int64_t floor_divide(int64_t a, int64_t b) {
  if (b < 1) return 0;
  const int64_t q = a / b;
  return q - (a % b < 0 ? 1 : 0);
}
int64_t remainder(int64_t a, int64_t b) {
  if (b < 1) return 0;
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

int64_t apply(Op op, int64_t a, int64_t b, int64_t c) {
  switch (op) {
    case Op::add:
      return add(a, b);
    case Op::subtract:
      return subtract(a, b);
    case Op::multiply:
      return multiply(a, b);
    case Op::divide:
      return floor_divide(a, b);
    case Op::remainder:
      return remainder(a, b);
    case Op::bit_xor:
      return a ^ b;
    case Op::bit_and:
      return a & b;
    case Op::bit_or:
      return a | b;
    case Op::shift_left:
      return multiply(a, int64_t{1} << std::clamp<int64_t>(b, 0, 62));
    case Op::shift_right:
      return a >> std::clamp<int64_t>(b, 0, 62);
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return std::max(a, b);
    case Op::select:
      return a != 0 ? b : c;
    case Op::equal:
      return a == b ? 1 : 0;
    case Op::not_equal:
      return a != b ? 1 : 0;
    case Op::less:
      return a < b ? 1 : 0;
    case Op::less_equal:
      return a <= b ? 1 : 0;
    case Op::logical_and:
      return a != 0 && b != 0 ? 1 : 0;
    case Op::logical_or:
      return a != 0 || b != 0 ? 1 : 0;
    case Op::logical_not:
      return a == 0 ? 1 : 0;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Expression> Expression::compile(term::Term t) {
  Expression out;
  std::map<const term::Node*, int> places;
  bool reads = false;
  const auto visit = [&](const auto& self, term::Term at) -> int {
    if (const auto found = places.find(at.node()); found != places.end()) return found->second;
    Step step{.op = at->op, .value = at->value};
    if (at->op == Op::read) reads = true;
    if (at->symbol != nullptr) {
      step.value = at->symbol->index;
      out.symbols_.push_back(at->symbol);
    }
    std::array<int, 3> arguments{};
    for (std::size_t i = 0; i < at->args.size() && i < 3; ++i)
      arguments[i] = self(self, at->args[i]);
    step.a = arguments[0];
    step.b = arguments[1];
    step.c = arguments[2];
    out.steps_.push_back(step);
    return places[at.node()] = static_cast<int>(out.steps_.size()) - 1;
  };
  visit(visit, t);
  if (reads) return std::nullopt;
  return out;
}

void Expression::evaluate(const Frame& frame, int64_t* values) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    if (s.op == Op::constant || s.op == Op::truth)
      values[i] = s.value;
    else if (s.op == Op::coordinate || s.op == Op::counter || s.op == Op::parameter)
      values[i] = frame[static_cast<std::size_t>(s.value)];
    else
      values[i] = apply(s.op, values[s.a], values[s.b], values[s.c]);
  }
}

int64_t Expression::operator()(const Frame& frame) const {
  if (steps_.size() <= small) {
    std::array<int64_t, small> values;  // NOLINT: every place is written before it is read
    evaluate(frame, values.data());
    return values[steps_.size() - 1];
  }
  std::vector<int64_t> values(steps_.size());
  evaluate(frame, values.data());
  return values.back();
}

bool Expression::uses(const term::Symbol* s) const {
  return std::find(symbols_.begin(), symbols_.end(), s) != symbols_.end();
}

}  // namespace tessera::simulate
