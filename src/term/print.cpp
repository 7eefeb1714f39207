#include <fmt/format.h>

#include "term/term.h"

namespace tessera::term {
namespace {

// How tightly an operator of Python binds its operands; an atom binds most.
enum Strength {
  weakest,
  of_or,
  of_and,
  of_not,
  of_compare,
  of_bit_or,
  of_bit_xor,
  of_bit_and,
  of_shift,
  of_sum,
  of_product,
  of_sign,
  of_atom
};

struct Spelling {
  Strength strength;
  const char* text;
};

Spelling spelling(Op op) {
  switch (op) {
    case Op::add:
      return {of_sum, " + "};
    case Op::subtract:
      return {of_sum, " - "};
    case Op::multiply:
      return {of_product, " * "};
    case Op::divide:
      return {of_product, " // "};
    case Op::remainder:
      return {of_product, " % "};
    case Op::bit_xor:
      return {of_bit_xor, " ^ "};
    case Op::bit_and:
      return {of_bit_and, " & "};
    case Op::bit_or:
      return {of_bit_or, " | "};
    case Op::shift_left:
      return {of_shift, " << "};
    case Op::shift_right:
      return {of_shift, " >> "};
    case Op::equal:
      return {of_compare, " == "};
    case Op::not_equal:
      return {of_compare, " != "};
    case Op::less:
      return {of_compare, " < "};
    case Op::less_equal:
      return {of_compare, " <= "};
    case Op::logical_and:
      return {of_and, " and "};
    case Op::logical_or:
      return {of_or, " or "};
    case Op::min:
      return {of_atom, "min"};
    case Op::max:
      return {of_atom, "max"};
    case Op::select:
      return {of_atom, "select"};
    default:
      return {of_atom, ""};
  }
}

std::string print(Term t, Strength around);

std::string listed(const std::vector<Term>& args) {
  std::string out;
  for (Term a : args) out += (out.empty() ? "" : ", ") + print(a, weakest);
  return out;
}

// -1 * x is written -x, unless x is a number: -3 is a constant.
bool is_sign(Term t) {
  return t->op == Op::multiply && t->args[0]->op == Op::constant && t->args[0]->value == -1 &&
         t->args[1]->op != Op::constant;
}

std::string print(Term t, Strength around) {
  const auto bracketed = [&](Strength own, std::string text) {
    return own < around ? "(" + std::move(text) + ")" : std::move(text);
  };
  switch (t->op) {
    case Op::constant:
      return bracketed(t->value < 0 ? of_sign : of_atom, fmt::format("{}", t->value));
    case Op::truth:
      return t->value != 0 ? "True" : "False";
    case Op::coordinate:
    case Op::counter:
    case Op::parameter:
      return t->symbol->name;
    case Op::read:
      return t->symbol->name + "[" + listed(t->args) + "]";
    case Op::min:
    case Op::max:
    case Op::select:
      return spelling(t->op).text + ("(" + listed(t->args) + ")");
    case Op::logical_not:
      return bracketed(of_not, "not " + print(t->args[0], of_not));
    default:
      break;
  }
  if (is_sign(t)) return bracketed(of_sign, "-" + print(t->args[1], of_atom));
  const auto [own, text] = spelling(t->op);
  // Python's operators group from the left; comparisons would chain, so both sides are bracketed.
  const Strength left = own == of_compare ? of_bit_or : own;
  return bracketed(
      own, print(t->args[0], left) + text + print(t->args[1], static_cast<Strength>(own + 1)));
}

}  // namespace

std::string to_string(Term t) {
  return print(t, weakest);
}

}  // namespace tessera::term
