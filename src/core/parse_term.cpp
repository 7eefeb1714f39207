// Terms of a kernel's text, from Python's expressions.
#include "base/text.h"

#include "core/parse.h"
#include "core/scope.h"

namespace tessera::core {
namespace {

using syntax::Expr;
using term::Op;

struct Operator {
  std::string_view text;
  Op op;
};
constexpr Operator operators[] = {
    {"+", Op::add},          {"-", Op::subtract},      {"*", Op::multiply},
    {"//", Op::divide},      {"%", Op::remainder},     {"^", Op::bit_xor},
    {"&", Op::bit_and},      {"|", Op::bit_or},        {"<<", Op::shift_left},
    {">>", Op::shift_right}, {"and", Op::logical_and}, {"or", Op::logical_or}};

struct Comparison {
  std::string_view text;
  Op op;
  bool swapped = false;
};
constexpr Comparison comparisons[] = {{"==", Op::equal},      {"!=", Op::not_equal},
                                      {"<=", Op::less_equal}, {">=", Op::less_equal, true},
                                      {"<", Op::less},        {">", Op::less, true}};

struct TermReader {
  const Scope& scope;
  term::Pool& pool;

  [[nodiscard]] tl::unexpected<Diagnostic> wrong(Span span, std::string_view what,
                                                 std::string_view expected) const {
    return error(
        bad_text_at(scope.source(), span, what, expected).but_found("{}", scope.quoted(span)));
  }
  /// The pool's verdict on an operation, at its place.
  [[nodiscard]] Result<Term> made(Op op, std::vector<Term> arguments, Span span) const {
    Result<Term> t = pool.make(op, std::move(arguments));
    if (t) return t;
    return error(std::move(t.error()).label(scope.source().label(span)));
  }

  Result<Term> operator()(const Expr& e) const {
    if (const auto* i = e.as<syntax::Integer>()) return pool.constant(i->value);
    if (const auto* n = e.as<syntax::Name>()) return named(n->id, e.span);
    if (const auto* c = e.as<syntax::Constant>())
      if (*c == syntax::Constant::truth || *c == syntax::Constant::falsehood)
        return pool.truth(*c == syntax::Constant::truth);
    if (const auto* u = e.as<syntax::Unary>()) return unary(*u, e.span);
    if (const auto* b = e.as<syntax::Binary>()) return binary(*b, e.span);
    if (const auto* c = e.as<syntax::Compare>()) return compare(*c, e.span);
    if (const auto* c = e.as<syntax::Call>()) return call(*c, e.span);
    if (const auto* c = e.as<syntax::Conditional>()) {
      TESSERA_TRY(p, (*this)(*c->condition));
      TESSERA_TRY(yes, (*this)(*c->yes));
      TESSERA_TRY(no, (*this)(*c->no));
      return made(Op::select, {p, yes, no}, e.span);
    }
    return wrong(e.span, "this is no index term",
                 "numbers, names, + - * // % ^ & | << >>, comparisons, min, max, select");
  }

  [[nodiscard]] Result<Term> named(const std::string& name, Span span) const {
    TESSERA_TRY(meaning, scope.at(name, span));
    if (const auto* t = std::get_if<Term>(&meaning)) return *t;
    return error(bad_text_at(scope.source(), span, fmt::format("`{}` is no integer", name),
                             "a parameter, a counter or a coordinate")
                     .but_found("{}", kind_of(meaning)));
  }

  [[nodiscard]] Result<Term> unary(const syntax::Unary& u, Span span) const {
    if (const auto* i = u.operand->as<syntax::Integer>(); i != nullptr && u.op == "-")
      return pool.constant(-i->value);
    TESSERA_TRY(t, (*this)(*u.operand));
    if (u.op == "-") return made(Op::multiply, {pool.constant(-1), t}, span);
    if (u.op == "not") return made(Op::logical_not, {t}, span);
    return wrong(span, fmt::format("`{}` is no operator of terms", u.op), "`-` or `not`");
  }

  [[nodiscard]] Result<Term> binary(const syntax::Binary& b, Span span) const {
    for (const Operator& o : operators) {
      if (o.text != b.op) continue;
      TESSERA_TRY(left, (*this)(*b.left));
      TESSERA_TRY(right, (*this)(*b.right));
      return made(o.op, {left, right}, span);
    }
    return wrong(span, fmt::format("`{}` is no operator of terms", b.op),
                 b.op == "/" ? "`//`, which rounds down" : "+ - * // % ^ & | << >>");
  }

  /// a < b <= c means a < b and b <= c.
  [[nodiscard]] Result<Term> compare(const syntax::Compare& c, Span span) const {
    TESSERA_TRY(first, (*this)(c.values[0]));
    Term left = first, all;
    for (std::size_t i = 0; i < c.ops.size(); ++i) {
      TESSERA_TRY(right, (*this)(c.values[i + 1]));
      const Comparison* found = nullptr;
      for (const Comparison& o : comparisons)
        if (o.text == c.ops[i]) found = &o;
      if (found == nullptr)
        return wrong(span, fmt::format("`{}` is no comparison of terms", c.ops[i]),
                     "== != < <= > >=");
      std::vector<Term> sides = {left, right};
      if (found->swapped) std::swap(sides[0], sides[1]);
      TESSERA_TRY(one, made(found->op, std::move(sides), span));
      if (!all) {
        all = one;
      } else {
        TESSERA_TRY(both, made(Op::logical_and, {all, one}, span));
        all = both;
      }
      left = right;
    }
    return all;
  }

  [[nodiscard]] Result<Term> call(const syntax::Call& c, Span span) const {
    const auto* name = c.function->as<syntax::Name>();
    const std::string of = name == nullptr ? "" : name->id;
    if (of != "min" && of != "max" && of != "select")
      return error(with_nearest(bad_text_at(scope.source(), c.function->span,
                                            "this is no function of integers", "min, max or select")
                                    .but_found("{}", scope.quoted(c.function->span)),
                                of, {"min", "max", "select"}));
    std::vector<Term> arguments;
    for (const syntax::Argument& a : c.arguments) {
      if (!a.keyword.empty())
        return wrong(a.span, fmt::format("`{}` takes no keywords", of), "values without names");
      TESSERA_TRY(t, (*this)(a.value));
      arguments.push_back(t);
    }
    const std::size_t least = of == "select" ? 3 : 2;
    if (arguments.size() < least || (of == "select" && arguments.size() > 3))
      return wrong(span, fmt::format("`{}` has {} arguments", of, arguments.size()),
                   of == "select" ? "a condition and two values" : "two or more");
    if (of == "select") return made(Op::select, std::move(arguments), span);
    Term all = arguments[0];
    for (std::size_t i = 1; i < arguments.size(); ++i) {
      TESSERA_TRY(more, made(of == "min" ? Op::min : Op::max, {all, arguments[i]}, span));
      all = more;
    }
    return all;
  }
};

}  // namespace

Result<Term> Scope::term(term::Pool& pool, const syntax::Expr& e) const {
  return TermReader{*this, pool}(e);
}

Result<std::vector<Term>> Scope::terms(term::Pool& pool,
                                       const std::vector<syntax::Expr>& all) const {
  std::vector<Term> out;
  for (const syntax::Expr& e : all) {
    TESSERA_TRY(t, term(pool, e));
    out.push_back(t);
  }
  return out;
}

}  // namespace tessera::core
