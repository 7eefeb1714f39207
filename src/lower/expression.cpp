#include "lower/expression.h"

#include <bit>

#include "lower/codes.h"

namespace tessera::lower {
namespace {

using term::Op;
using term::Term;

/// log2 of a constant power of two, else -1.
int power_of(Term t) {
  if (t->op != Op::constant || t->value < 1 ||
      !std::has_single_bit(static_cast<uint64_t>(t->value)))
    return -1;
  return std::countr_zero(static_cast<uint64_t>(t->value));
}

std::string_view sign(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::subtract:
      return "-";
    case Op::multiply:
      return "*";
    case Op::bit_xor:
      return "^";
    case Op::bit_and:
      return "&";
    case Op::bit_or:
      return "|";
    case Op::shift_left:
      return "<<";
    case Op::shift_right:
      return ">>";
    case Op::equal:
      return "==";
    case Op::not_equal:
      return "!=";
    case Op::less:
      return "<";
    case Op::less_equal:
      return "<=";
    case Op::logical_and:
      return "&&";
    case Op::logical_or:
      return "||";
    default:
      return "";
  }
}

}  // namespace

std::string without_brackets(std::string text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return text;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return text;
  }
  return text.substr(1, text.size() - 2);
}

bool Expressions::is_long(Term t) {
  return !t->predicate() && (long_alone_ || !ranges_.of(t).fits_int());
}

std::string Expressions::type_of(Term t) {
  return t->predicate() ? "bool" : is_long(t) ? "int64_t" : "int";
}

std::string Expressions::text(Term t) {
  return without_brackets(operand(t));
}

std::string Expressions::operand(Term t) {
  return typed(t).text;
}

std::string Expressions::in(const Typed& x, bool as_long) const {
  if (x.is_long == as_long) return x.text;
  if (as_long && x.text.find_first_not_of("0123456789") == std::string::npos) return x.text + "L";
  const std::string inner = without_brackets(x.text);
  // A functional cast binds tighter than any operator.
  return as_long ? fmt::format("int64_t({})", inner) : fmt::format("int({})", inner);
}

Expressions::Typed Expressions::leaf(Term t) {
  if (t->op == Op::truth) return {t->value != 0 ? "true" : "false", false};
  if (t->op == Op::constant) {
    const bool wide = is_long(t);
    if (t->value == INT64_MIN) return {"INT64_MIN", true};
    if (t->value == INT32_MIN && !wide) return {"INT32_MIN", false};
    const std::string digits = fmt::format("{}{}", t->value, wide ? "L" : "");
    return {t->value < 0 ? "(" + digits + ")" : digits, wide};
  }
  refuse_(fail(unsupported, "`{}` has no value here", term::to_string(t))
              .help("use a counter inside its loop alone, and the coordinates of the kernel"));
  return {"0", false};
}

/// What was computed as `long long` may be known to fit an `int`.
Expressions::Typed Expressions::converted(Term t, const Typed& computed) {
  const bool wide = is_long(t);
  return {in(computed, wide), wide};
}

Expressions::Typed Expressions::typed(Term t) {
  if (const auto found = names_.find(t.node()); found != names_.end())
    return {found->second, is_long(t)};
  if (t->leaf()) return leaf(t);
  if (const Range& r = ranges_.of(t); r.low == r.high && r.fits_long() && !t->predicate())
    return leaf(t->pool->constant(static_cast<int64_t>(r.low)));
  if (t->predicate()) return {logic(t), false};
  if (t->op == Op::read) {
    refuse_(fail(unsupported, "an index cannot be read from memory: `{}`", term::to_string(t))
                .help("load it into registers by an instruction"));
    return {"0", false};
  }
  if (!long_alone_ && !ranges_.of(t).fits_long())
    refuse_(fail(unbounded, "`{}` may leave 64 bits", term::to_string(t))
                .help("declare upper bounds of the parameters in it"));
  if (t->op == Op::divide || t->op == Op::remainder) return division(t);
  return arithmetic(t);
}

Expressions::Typed Expressions::division(Term t) {
  const Typed a = typed(t->args[0]), b = typed(t->args[1]);
  const bool quotient = t->op == Op::divide;
  const bool wide = a.is_long || b.is_long;
  if (const int shift = power_of(t->args[1]); shift >= 0) {
    if (quotient) return converted(t, {fmt::format("({} >> {})", a.text, shift), a.is_long});
    const int64_t mask = t->args[1]->value - 1;
    if (!a.is_long || long_alone_ || shift > 31)
      return converted(t, {fmt::format("({} & {})", a.text, mask), a.is_long});
    // The low bits alone are asked for, also of a quotient by another power of two.
    const Term x = t->args[0];
    const int inner =
        x->op == Op::divide && names_.count(x.node()) == 0 ? power_of(x->args[1]) : -1;
    const std::string low = inner >= 0 && inner + shift <= 32
                                ? fmt::format("(uint32_t({}) >> {})", text(x->args[0]), inner)
                                : fmt::format("uint32_t({})", without_brackets(a.text));
    return {fmt::format("int({} & {}u)", low, mask), false};
  }
  const std::string x = in(a, wide), y = in(b, wide);
  if (ranges_.of(t->args[0]).low < 0)
    return converted(t, {fmt::format("tessera::floor_{}({}, {})", quotient ? "divide" : "remainder",
                                     without_brackets(x), without_brackets(y)),
                         wide});
  const std::string of = wide ? "uint64_t" : "uint32_t";
  const std::string divided = fmt::format("{0}({1}) {2} {0}({3})", of, without_brackets(x),
                                          quotient ? "/" : "%", without_brackets(y));
  return converted(t, {fmt::format("{}({})", wide ? "int64_t" : "int", divided), wide});
}

bool Expressions::is_costly(Term t) {
  if (t->op != Op::divide && t->op != Op::remainder) return false;
  return t->args[1]->op != Op::constant && ranges_.of(t->args[1]).low >= 1;
}

Expressions::Typed Expressions::arithmetic(Term t) {
  const bool choice = t->op == Op::select;
  const Typed a = typed(t->args[choice ? 1 : 0]), b = typed(t->args[choice ? 2 : 1]);
  if (t->op == Op::shift_left || t->op == Op::shift_right) {
    const bool wide = a.is_long || is_long(t);
    const std::string x = in(a, wide);
    // C++ shifts no negative number to the left.
    const bool negative = t->op == Op::shift_left && ranges_.of(t->args[0]).low < 0;
    return converted(
        t, {negative ? fmt::format("{0}(u{1}({2}) << {3})", wide ? "int64_t" : "int",
                                   wide ? "int64_t" : "int32_t", without_brackets(x), b.text)
                     : fmt::format("({} {} {})", x, sign(t->op), b.text),
            wide});
  }
  const bool wide = a.is_long || b.is_long || is_long(t);
  const std::string x = in(a, wide), y = in(b, wide);
  if (choice) return converted(t, {fmt::format("({} ? {} : {})", operand(t->args[0]), x, y), wide});
  if (t->op == Op::min || t->op == Op::max)
    return converted(t, {fmt::format("tessera::{}({}, {})", t->op == Op::min ? "least" : "most",
                                     without_brackets(x), without_brackets(y)),
                         wide});
  return converted(t, {fmt::format("({} {} {})", x, sign(t->op), y), wide});
}

std::string Expressions::logic(Term t) {
  if (t->op == Op::logical_not) return "!" + operand(t->args[0]);
  const Typed a = typed(t->args[0]), b = typed(t->args[1]);
  const bool wide = a.is_long || b.is_long;
  return fmt::format("({} {} {})", in(a, wide), sign(t->op), in(b, wide));
}

}  // namespace tessera::lower
