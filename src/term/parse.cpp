#include <array>
#include <cctype>
#include <charconv>

#include "base/text.h"

#include "term/term.h"

namespace tessera::term {
namespace {

struct Operator {
  std::string_view text;
  Op op;
  int level;  // of binding; higher binds tighter
};

// Longer texts first, so that `<<` is not read as `<`.
constexpr Operator operators[] = {
    {"//", Op::divide, 5},   {"<<", Op::shift_left, 3}, {">>", Op::shift_right, 3},
    {"+", Op::add, 4},       {"-", Op::subtract, 4},    {"*", Op::multiply, 5},
    {"%", Op::remainder, 5}, {"^", Op::bit_xor, 1},     {"&", Op::bit_and, 2},
    {"|", Op::bit_or, 0},
};
constexpr int tightest = 5;
constexpr int deepest = 64;  // brackets within brackets

struct Comparison {
  std::string_view text;
  Op op;
  bool swapped;
};
constexpr Comparison comparisons[] = {{"==", Op::equal, false},      {"!=", Op::not_equal, false},
                                      {"<=", Op::less_equal, false}, {">=", Op::less_equal, true},
                                      {"<", Op::less, false},        {">", Op::less, true}};

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

class Parser {
 public:
  Parser(Pool& pool, std::string_view text) : pool_(pool), text_(text) {}

  Result<Term> whole() {
    TESSERA_TRY(t, choice());
    skip();
    if (at_ < text_.size()) return wrong("the end");
    return t;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  tl::unexpected<Diagnostic> wrong(std::string_view expected) {
    skip();
    Diagnostic d = fail(bad_syntax, "the term `{}` cannot be read at column {}", text_, at_ + 1);
    d.expected = expected;
    d.found =
        at_ < text_.size() ? fmt::format("`{}`", text_.substr(at_, 12)) : std::string("the end");
    d.place.column = static_cast<int>(at_) + 1;
    return error(std::move(d));
  }
  // Errors of the pool get the column.
  Result<Term> placed(Result<Term> made) {
    if (!made && made.error().place.column == 0)
      made.error().place.column = static_cast<int>(at_) + 1;
    return made;
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take_word(std::string_view word) {
    skip();
    const std::size_t end = at_ + word.size();
    if (!text_.substr(at_).starts_with(word) || (end < text_.size() && in_name(text_[end])))
      return false;
    at_ = end;
    return true;
  }

  // a if p else b
  Result<Term> choice() {
    if (++depth_ > deepest) return wrong("fewer brackets within brackets");
    TESSERA_TRY(first, either());
    --depth_;
    if (!take_word("if")) return first;
    TESSERA_TRY(condition, either());
    if (!take_word("else")) return wrong("`else`");
    TESSERA_TRY(second, choice());
    return placed(pool_.make(Op::select, {condition, first, second}));
  }
  Result<Term> either() {
    TESSERA_TRY(left, both());
    Term out = left;
    while (take_word("or")) {
      TESSERA_TRY(right, both());
      TESSERA_TRY(made, placed(pool_.make(Op::logical_or, {out, right})));
      out = made;
    }
    return out;
  }
  Result<Term> both() {
    TESSERA_TRY(left, negation());
    Term out = left;
    while (take_word("and")) {
      TESSERA_TRY(right, negation());
      TESSERA_TRY(made, placed(pool_.make(Op::logical_and, {out, right})));
      out = made;
    }
    return out;
  }
  Result<Term> negation() {
    if (!take_word("not")) return compared();
    if (++depth_ > deepest) return wrong("fewer negations");
    TESSERA_TRY(inner, negation());
    --depth_;
    return placed(pool_.make(Op::logical_not, {inner}));
  }
  const Comparison* comparison() {
    skip();
    for (std::string_view shift : {"<<", ">>"})
      if (text_.substr(at_).starts_with(shift)) return nullptr;
    for (const Comparison& c : comparisons)
      if (take(c.text)) return &c;
    return nullptr;
  }
  // a < b <= c means a < b and b <= c, as in Python.
  Result<Term> compared() {
    TESSERA_TRY(first, binary(0));
    Term left = first, out;
    while (const Comparison* c = comparison()) {
      TESSERA_TRY(right, binary(0));
      TESSERA_TRY(one, placed(pool_.make(c->op, c->swapped ? std::vector{right, left}
                                                           : std::vector{left, right})));
      if (out) {
        TESSERA_TRY(made, placed(pool_.make(Op::logical_and, {out, one})));
        out = made;
      } else {
        out = one;
      }
      left = right;
    }
    return out ? out : left;
  }
  const Operator* binary_operator(int level) {
    skip();
    const std::string_view rest = text_.substr(at_);
    for (const Operator& o : operators) {
      if (!rest.starts_with(o.text)) continue;
      if (o.level != level) return nullptr;
      at_ += o.text.size();
      return &o;
    }
    return nullptr;
  }
  Result<Term> binary(int level) {
    if (level > tightest) return sign();
    TESSERA_TRY(left, binary(level + 1));
    Term out = left;
    while (const Operator* o = binary_operator(level)) {
      TESSERA_TRY(right, binary(level + 1));
      TESSERA_TRY(made, placed(pool_.make(o->op, {out, right})));
      out = made;
    }
    return out;
  }
  Result<Term> sign() {
    if (!take("-")) return atom();
    skip();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
      return number("-");
    if (++depth_ > deepest) return wrong("fewer signs");
    TESSERA_TRY(inner, sign());
    --depth_;
    return placed(pool_.make(Op::multiply, {pool_.constant(-1), inner}));
  }
  Result<Term> number(std::string digits) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
      digits += text_[at_++];
    int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size()) {
      at_ = begin;
      return wrong("a number of 64 bits");
    }
    return pool_.constant(value);
  }
  Result<std::vector<Term>> list(std::string_view close) {
    std::vector<Term> out;
    do {
      TESSERA_TRY(t, choice());
      out.push_back(t);
    } while (take(","));
    if (!take(close)) return wrong(fmt::format("`,` or `{}`", close));
    return out;
  }
  Result<Term> call(Op op) {
    if (!take("(")) return wrong("`(`");
    TESSERA_TRY(args, list(")"));
    if (op == Op::select || args.size() < 2) return placed(pool_.make(op, std::move(args)));
    Term out = args[0];
    for (std::size_t i = 1; i < args.size(); ++i) {
      TESSERA_TRY(made, placed(pool_.make(op, {out, args[i]})));
      out = made;
    }
    return out;
  }
  Result<Term> atom() {
    if (take("(")) {
      TESSERA_TRY(inner, choice());
      if (!take(")")) return wrong("`)`");
      return inner;
    }
    skip();
    if (at_ >= text_.size() || !in_name(text_[at_])) return wrong("a number, a name or `(`");
    if (std::isdigit(static_cast<unsigned char>(text_[at_]))) return number("");
    if (take_word("True")) return pool_.truth(true);
    if (take_word("False")) return pool_.truth(false);
    if (take_word("min")) return call(Op::min);
    if (take_word("max")) return call(Op::max);
    if (take_word("select")) return call(Op::select);
    return named();
  }
  Result<Term> named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const Symbol* found = pool_.find(name);
    if (found == nullptr) {
      Diagnostic d = fail(bad_symbol, "`{}` is not declared", name);
      d.place.column = static_cast<int>(begin) + 1;
      return error(std::move(d));
    }
    if (found->kind != Op::read) return pool_.symbol(found);
    if (!take("[")) return wrong("`[`");
    TESSERA_TRY(args, list("]"));
    return placed(pool_.read(found, std::move(args)));
  }

  Pool& pool_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Term> parse(Pool& pool, std::string_view text) {
  return Parser(pool, text).whole();
}

}  // namespace tessera::term
