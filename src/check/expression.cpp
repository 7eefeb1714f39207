#include "check/expression.h"

#include <algorithm>
#include <array>

#include "term/facts.h"

namespace tessera::check {
namespace {

using term::Op;

constexpr std::size_t deepest = 128;

/// The binary operators; false where there is no value.
bool apply(Op op, int64_t a, int64_t b, int64_t& out) {
  switch (op) {
    case Op::add:
      return !__builtin_add_overflow(a, b, &out);
    case Op::subtract:
      return !__builtin_sub_overflow(a, b, &out);
    case Op::multiply:
      return !__builtin_mul_overflow(a, b, &out);
    case Op::divide:
    case Op::remainder:
      if (b < 1) return false;
      out = op == Op::divide ? term::floor_quotient(a, b) : term::floor_remainder(a, b);
      return true;
    case Op::bit_xor:
      return out = a ^ b, true;
    case Op::bit_and:
      return out = a & b, true;
    case Op::bit_or:
      return out = a | b, true;
    case Op::shift_left:
      return b >= 0 && b <= 62 && !__builtin_mul_overflow(a, int64_t{1} << b, &out);
    case Op::shift_right:
      return b >= 0 && b <= 62 && (out = a >> b, true);
    case Op::min:
      return out = std::min(a, b), true;
    case Op::max:
      return out = std::max(a, b), true;
    case Op::equal:
      return out = static_cast<int64_t>(a == b), true;
    case Op::not_equal:
      return out = static_cast<int64_t>(a != b), true;
    case Op::less:
      return out = static_cast<int64_t>(a < b), true;
    case Op::less_equal:
      return out = static_cast<int64_t>(a <= b), true;
    case Op::logical_and:
      return out = a & b, true;
    case Op::logical_or:
      return out = a | b, true;
    default:
      return false;
  }
}

}  // namespace

Expression::Expression(Term t) {
  compile(t);
  std::sort(symbols_.begin(), symbols_.end());
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
}

void Expression::compile(Term t) {
  if (t->op == Op::constant || t->op == Op::truth) {
    code_.push_back({Op::constant, t->value});
    return;
  }
  if (t->leaf()) {
    code_.push_back({t->op, t->symbol->index});
    symbols_.push_back(t->symbol->index);
    return;
  }
  reads_memory_ |= t->op == Op::read;
  for (Term a : t->args) compile(a);
  code_.push_back({t->op, 0});
}

std::optional<int64_t> Expression::operator()(const Values& values) const {
  if (reads_memory_) return std::nullopt;
  if (code_.size() == 1)
    return code_[0].op == Op::constant ? code_[0].value
                                       : values[static_cast<std::size_t>(code_[0].value)];
  std::array<int64_t, deepest>
      stack;  // NOLINT(cppcoreguidelines-pro-type-member-init): written first
  std::size_t top = 0;
  for (const Instruction& i : code_) {
    if (top + 1 >= deepest) return std::nullopt;
    if (i.op == Op::constant) {
      stack[top++] = i.value;
    } else if (i.op <= Op::parameter) {
      stack[top++] = values[static_cast<std::size_t>(i.value)];
    } else if (i.op == Op::logical_not) {
      stack[top - 1] = stack[top - 1] == 0 ? 1 : 0;
    } else if (i.op == Op::select) {
      top -= 2;
      stack[top - 1] = stack[top - 1] != 0 ? stack[top] : stack[top + 1];
    } else {
      --top;
      if (!apply(i.op, stack[top - 1], stack[top], stack[top - 1])) return std::nullopt;
    }
  }
  return top == 1 ? std::optional(stack[0]) : std::nullopt;
}

}  // namespace tessera::check
