// Expressions, by precedence climbing from `:=` down to names and numbers.
#include <array>
#include <charconv>
#include <span>

#include "syntax/parser.h"

namespace tessera::syntax {
namespace {

/// Left-associative operators, the loosest first.
const std::array<std::vector<std::string_view>, 6> levels = {{
    {"|"},
    {"^"},
    {"&"},
    {"<<", ">>"},
    {"+", "-"},
    {"*", "/", "//", "%", "@"},
}};
constexpr int deepest = 100;
constexpr int longest = 1000;

Expr make(Span span, decltype(Expr::node) node) {
  return {.span = span, .node = std::move(node)};
}

}  // namespace

Diagnostic Parser::wrong(std::string_view expected) const {
  const Token& t = peek();
  return fail(bad_syntax, "expected {}, found {}", expected, to_string(t))
      .label(source_.label(t.span, fmt::format("{} belongs here", expected)))
      .expect("{}", expected)
      .but_found("{}", to_string(t));
}

Diagnostic Parser::refuse(Span span, std::string_view what, std::string_view instead) const {
  return fail(not_in_language, "{} not in the language", what)
      .label(source_.label(span))
      .help("{}", instead);
}

Result<Token> Parser::need(std::string_view text, std::string_view after) {
  if (is(text)) return take();
  return error(wrong(fmt::format("`{}` after {}", text, after)));
}

Result<Token> Parser::need_name(std::string_view what) {
  if (is(Word::name)) return take();
  return error(wrong(what));
}

Status Parser::not_too_deep(int turns) {
  if (depth_ <= deepest && turns <= longest) return {};
  return error(fail(bad_syntax, "this nests more than {} deep, or joins more than {} operators",
                    deepest, longest)
                   .label(source_.label(peek().span))
                   .help("give parts of it names"));
}

Result<Expr> Parser::expressions() {
  const Span begin = peek().span;
  TESSERA_TRY(first, expression());
  if (!is(",")) return first;
  std::vector<Expr> all;
  all.push_back(std::move(first));
  Span last = all.back().span;
  while (take_if(",")) {
    if (is(Word::newline) || is("=") || is(")") || is(":") || is(Word::end)) break;
    TESSERA_TRY(next, expression());
    last = next.span;
    all.push_back(std::move(next));
  }
  return make(begin.to(last), Tuple{std::move(all)});
}

Result<Expr> Parser::expression() {
  const Deeper deeper(*this);
  TESSERA_CHECK(not_too_deep());
  if (is("lambda")) return lambda();
  if (is(Word::name) && is(":=", 1)) return named();
  if (is("yield") || is("await"))
    return error(refuse(peek().span, "generators and coroutines are", "write a loop"));
  return conditional();
}

Result<Expr> Parser::named() {
  const Token name = take();
  take();
  TESSERA_TRY(value, expression());
  const Span span = name.span.to(value.span);
  return make(span, Named{name.text, std::move(value)});
}

Result<Expr> Parser::conditional() {
  TESSERA_TRY(yes, logical("or"));
  if (!is("if")) return yes;
  take();
  TESSERA_TRY(condition, logical("or"));
  TESSERA_TRY(word, need("else", "the condition of `a if condition else b`"));
  TESSERA_TRY(no, expression());
  const Span span = yes.span.to(no.span);
  return make(span, Conditional{std::move(condition), std::move(yes), std::move(no)});
}

Result<Expr> Parser::lambda() {
  const Span begin = take().span;
  std::vector<std::string> parameters;
  while (!is(":")) {
    TESSERA_TRY(name, need_name("the name of a parameter"));
    parameters.push_back(name.text);
    if (!take_if(",")) break;
  }
  TESSERA_TRY(colon, need(":", "the parameters of a lambda"));
  TESSERA_TRY(body, expression());
  const Span span = begin.to(body.span);
  return make(span, Lambda{std::move(parameters), std::move(body)});
}

Result<Expr> Parser::logical(std::string_view op) {
  const bool loose = op == "or";
  TESSERA_TRY(left, loose ? logical("and") : negation());
  for (int turns = 0; is(op); ++turns) {
    TESSERA_CHECK(not_too_deep(turns));
    take();
    TESSERA_TRY(right, loose ? logical("and") : negation());
    const Span span = left.span.to(right.span);
    left = make(span, Binary{std::string(op), std::move(left), std::move(right)});
  }
  return left;
}

Result<Expr> Parser::negation() {
  if (!is("not")) return comparison();
  const Deeper deeper(*this);
  TESSERA_CHECK(not_too_deep());
  const Span begin = take().span;
  TESSERA_TRY(operand, negation());
  const Span span = begin.to(operand.span);
  return make(span, Unary{"not", std::move(operand)});
}

/// The comparison at hand; empty when none is.
Result<std::string> Parser::comparing() {
  for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
    if (is(op)) return take().text;
  if (is("in") || is("is") || (is("not") && is("in", 1)))
    return error(refuse(peek().span, fmt::format("`{}` is", peek().text), "compare by == or <"));
  return std::string();
}

Result<Expr> Parser::comparison() {
  TESSERA_TRY(first, binary(0));
  TESSERA_TRY(op, comparing());
  if (op.empty()) return first;
  Compare all;
  const Span begin = first.span;
  all.values.push_back(std::move(first));
  while (!op.empty()) {
    TESSERA_TRY(next, binary(0));
    all.ops.push_back(std::move(op));
    all.values.push_back(std::move(next));
    TESSERA_TRY(again, comparing());
    op = std::move(again);
  }
  const Span span = begin.to(all.values.back().span);
  return make(span, std::move(all));
}

Result<Expr> Parser::binary(std::size_t level) {
  if (level == levels.size()) return unary();
  TESSERA_TRY(left, binary(level + 1));
  const auto here = [&] {
    for (const std::string_view op : levels[level])
      if (is(op)) return true;
    return false;
  };
  for (int turns = 0; here(); ++turns) {
    TESSERA_CHECK(not_too_deep(turns));
    const std::string op = take().text;
    TESSERA_TRY(right, binary(level + 1));
    const Span span = left.span.to(right.span);
    left = make(span, Binary{op, std::move(left), std::move(right)});
  }
  return left;
}

Result<Expr> Parser::unary() {
  if (!is("-") && !is("+") && !is("~")) return power();
  const Deeper deeper(*this);
  TESSERA_CHECK(not_too_deep());
  const Token op = take();
  TESSERA_TRY(operand, unary());
  const Span span = op.span.to(operand.span);
  return make(span, Unary{op.text, std::move(operand)});
}

Result<Expr> Parser::power() {
  TESSERA_TRY(base, primary());
  if (!take_if("**")) return base;
  const Deeper deeper(*this);
  TESSERA_CHECK(not_too_deep());
  TESSERA_TRY(exponent, unary());
  const Span span = base.span.to(exponent.span);
  return make(span, Binary{"**", std::move(base), std::move(exponent)});
}

Result<Expr> Parser::primary() {
  TESSERA_TRY(e, atom());
  for (int turns = 0;; ++turns) {
    TESSERA_CHECK(not_too_deep(turns));
    if (take_if(".")) {
      TESSERA_TRY(name, need_name("the name of an attribute"));
      const Span span = e.span.to(name.span);
      e = make(span, Attribute{std::move(e), name.text});
    } else if (is("(")) {
      TESSERA_TRY(given, arguments());
      const Span span = e.span.to(tokens_[at_ - 1].span);
      e = make(span, Call{std::move(e), std::move(given)});
    } else if (is("[")) {
      take();
      std::vector<Expr> indices;
      while (!is("]")) {
        TESSERA_TRY(i, index());
        indices.push_back(std::move(i));
        if (!take_if(",")) break;
      }
      if (indices.empty()) return error(wrong("an index"));
      TESSERA_TRY(close, need("]", "the indices"));
      const Span span = e.span.to(close.span);
      e = make(span, Subscript{std::move(e), std::move(indices)});
    } else {
      return e;
    }
  }
}

/// An index or a slice.
Result<Expr> Parser::index() {
  const Span begin = peek().span;
  Slice slice;
  if (!is(":")) {
    TESSERA_TRY(first, expression());
    if (!is(":")) return first;
    slice.from = std::move(first);
  }
  Span last = take().span;
  for (std::optional<Box<Expr>>* part : {&slice.to, &slice.step}) {
    if (part == &slice.step) {
      if (!is(":")) break;
      last = take().span;
    }
    if (is(":") || is(",") || is("]")) continue;
    TESSERA_TRY(value, expression());
    last = value.span;
    *part = std::move(value);
  }
  return make(begin.to(last), std::move(slice));
}

Result<std::vector<Argument>> Parser::arguments() {
  take();
  std::vector<Argument> all;
  while (!is(")")) {
    if (is("*") || is("**"))
      return error(refuse(peek().span, "unpacked arguments are", "write the arguments out"));
    Argument a;
    const Span begin = peek().span;
    if (is(Word::name) && is("=", 1)) {
      a.keyword = take().text;
      take();
    } else if (!all.empty() && !all.back().keyword.empty()) {
      return error(fail(bad_syntax, "an argument by position follows one by keyword")
                       .label(source_.label(peek().span))
                       .help("put those without a keyword first"));
    }
    TESSERA_TRY(value, expression());
    if (is("for"))
      return error(refuse(peek().span, "comprehensions are", "write a loop or list the values"));
    a.value = std::move(value);
    a.span = begin.to(a.value.span);
    all.push_back(std::move(a));
    if (!take_if(",")) break;
  }
  TESSERA_TRY(close, need(")", "the arguments"));
  return all;
}

Result<std::vector<Expr>> Parser::items(std::string_view end) {
  std::vector<Expr> all;
  while (!is(end)) {
    TESSERA_TRY(e, expression());
    if (is("for"))
      return error(refuse(peek().span, "comprehensions are", "write a loop or list the values"));
    all.push_back(std::move(e));
    if (!take_if(",")) break;
  }
  return all;
}

Result<Expr> Parser::list() {
  const Span begin = take().span;
  TESSERA_TRY(all, items("]"));
  TESSERA_TRY(close, need("]", "the items of a list"));
  return make(begin.to(close.span), List{std::move(all)});
}

Result<Expr> Parser::bracketed() {
  const Span begin = take().span;
  if (is(")")) return make(begin.to(take().span), Tuple{});
  TESSERA_TRY(inside, expressions());
  if (is("for"))
    return error(refuse(peek().span, "comprehensions are", "write a loop or list the values"));
  TESSERA_TRY(close, need(")", "the expression"));
  inside.span = begin.to(close.span);
  return inside;
}

Result<Expr> Parser::number() {
  const Token t = take();
  const char* const end = t.text.data() + t.text.size();
  if (t.word == Word::floating) return make(t.span, Float{std::stod(t.text)});
  const char based = t.text.size() > 1 ? static_cast<char>(std::tolower(t.text[1])) : ' ';
  const int base = based == 'x' ? 16 : based == 'b' ? 2 : 10;
  Integer value;
  const auto read = std::from_chars(t.text.data() + (base == 10 ? 0 : 2), end, value.value, base);
  if (read.ec != std::errc())
    return error(
        fail(bad_literal, "{} does not fit in 64 bits", t.text).label(source_.label(t.span)));
  return make(t.span, value);
}

Result<Expr> Parser::atom() {
  const Token& t = peek();
  if (t.word == Word::name) {
    const Token name = take();
    return make(name.span, Name{name.text});
  }
  if (t.word == Word::integer || t.word == Word::floating) return number();
  if (t.word == Word::string) {
    const Token s = take();
    return make(s.span, String{s.text});
  }
  if (is("(")) return bracketed();
  if (is("[")) return list();
  if (is("{")) return error(refuse(t.span, "sets and dictionaries are", "pass values by keyword"));
  for (const auto& [text, constant] : {std::pair{"None", Constant::none},
                                       {"True", Constant::truth},
                                       {"False", Constant::falsehood},
                                       {"...", Constant::ellipsis}})
    if (is(text)) return make(take().span, constant);
  return error(wrong("an expression"));
}

Result<Expr> parse_expression(const Source& source) {
  TESSERA_TRY(words, tokens(source));
  Parser parser(source, std::move(words));
  TESSERA_TRY(e, parser.expressions());
  if (parser.is(Word::newline)) parser.take();
  if (!parser.is(Word::end)) return error(parser.wrong("the end of the expression"));
  return e;
}

}  // namespace tessera::syntax
