#include <algorithm>
#include <array>
#include <cctype>

#include "syntax/token.h"

namespace tessera::syntax {
namespace {

constexpr std::array keywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

// Longest first.
constexpr std::array symbols = {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=",
                                ">=",  "==",  "!=",  "->",  ":=",  "+=", "-=", "*=", "/=", "%=",
                                "&=",  "|=",  "^=",  "@=",  "+",   "-",  "*",  "/",  "%",  "@",
                                "&",   "|",   "^",   "~",   "<",   ">",  "(",  ")",  "[",  "]",
                                "{",   "}",   ",",   ":",   ".",   ";",  "="};

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  Result<std::vector<Token>> run() {
    while (at_ < size()) {
      if (line_begins_ && open_.empty()) TESSERA_CHECK(indentation());
      if (at_ >= size()) break;
      TESSERA_CHECK(one());
    }
    if (!open_.empty()) return error(unclosed());
    if (!out_.empty() && out_.back().word != Word::newline && out_.back().word != Word::dedent)
      add(Word::newline, at_);
    for (; depths_.size() > 1; depths_.pop_back()) add(Word::dedent, at_);
    add(Word::end, at_);
    return std::move(out_);
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(text_.size()); }
  [[nodiscard]] char peek(int ahead = 0) const {
    return at_ + ahead < size()
               ? text_[static_cast<std::size_t>(at_) + static_cast<std::size_t>(ahead)]
               : '\0';
  }
  void add(Word word, int begin) {
    out_.push_back({word, {begin, at_}, std::string(source_.text({begin, at_}))});
  }
  Diagnostic at(const Code& code, Span s, const std::string& message) const {
    return fail(code, "{}", message).label(source_.label(s));
  }

  Diagnostic unclosed() const {
    const Token& open = open_.back();
    return at(bad_syntax, open.span, fmt::format("`{}` is never closed", open.text))
        .expect("`{}`", closing(open.text));
  }
  static std::string_view closing(std::string_view open) {
    return open == "(" ? ")" : open == "[" ? "]" : "}";
  }

  /// At the beginning of a line outside of brackets: blank lines and comments are passed over, the
  /// depth of the next one opens or closes blocks.
  Status indentation() {
    while (at_ < size()) {
      const int begin = at_;
      while (peek() == ' ') ++at_;
      if (peek() == '\t')
        return error(at(bad_indentation, {at_, at_ + 1}, "a tab indents this line")
                         .help("indent by spaces, four a level"));
      const int depth = at_ - begin;
      if (peek() == '#') skip_comment();
      if (peek() == '\r') ++at_;
      if (peek() == '\n') {
        ++at_;
        continue;
      }
      if (at_ >= size()) return {};
      line_begins_ = false;
      return depth_is(depth);
    }
    return {};
  }

  Status depth_is(int depth) {
    const int begin = at_;
    if (depth > depths_.back()) {
      depths_.push_back(depth);
      add(Word::indent, begin);
      return {};
    }
    for (; depth < depths_.back(); depths_.pop_back()) add(Word::dedent, begin);
    if (depth == depths_.back()) return {};
    return error(at(bad_indentation, {begin - depth, begin + 1},
                    "this line is indented as no block around it is")
                     .expect("{} spaces, or as many as another block around it", depths_.back())
                     .but_found("{} spaces", depth));
  }

  void skip_comment() {
    while (at_ < size() && peek() != '\n') ++at_;
  }

  Status one() {
    const char c = peek();
    if (c == '\n') {
      const int begin = at_++;
      if (!open_.empty()) return {};
      out_.push_back({Word::newline, {begin, begin}, ""});
      line_begins_ = true;
      return {};
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
      return {};
    }
    if (c == '#') {
      skip_comment();
      return {};
    }
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      return {};
    }
    if (starts_name(c)) return name();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))) != 0))
      return number();
    if (c == '"' || c == '\'') return string();
    return symbol();
  }

  Status name() {
    const int begin = at_;
    while (continues_name(peek())) ++at_;
    if (peek() == '"' || peek() == '\'')
      return error(
          at(not_in_language, {begin, at_ + 1}, "strings with a prefix are not in the language")
              .help("write a plain string"));
    const bool reserved =
        std::find(keywords.begin(), keywords.end(), source_.text({begin, at_})) != keywords.end();
    add(reserved ? Word::keyword : Word::name, begin);
    return {};
  }

  Status number() {
    const int begin = at_;
    const bool based =
        peek() == '0' && (std::tolower(peek(1)) == 'x' || std::tolower(peek(1)) == 'b');
    bool floating = false;
    if (based) at_ += 2;
    while (true) {
      const char c = peek();
      const bool exponent = !based && (c == 'e' || c == 'E');
      if (exponent && (peek(1) == '+' || peek(1) == '-')) ++at_;
      if (exponent || (c == '.' && !based && !floating)) {
        floating = true;
      } else if (!continues_name(c)) {
        break;
      }
      ++at_;
    }
    std::string digits;
    for (const char c : source_.text({begin, at_}))
      if (c != '_') digits += c;
    TESSERA_CHECK(check_number(digits, based, floating, {begin, at_}));
    out_.push_back({floating ? Word::floating : Word::integer, {begin, at_}, digits});
    return {};
  }

  Status check_number(const std::string& digits, bool based, bool floating, Span span) const {
    const bool binary = based && std::tolower(digits[1]) == 'b';
    const std::string_view allowed = binary  ? "01"
                                     : based ? "0123456789abcdefABCDEF"
                                             : "0123456789";
    bool good = !based || digits.size() > 2;
    if (floating) {
      std::size_t used = 0;
      try {
        (void)std::stod(digits, &used);
      } catch (const std::exception&) {
        good = false;
      }
      good = good && used == digits.size();
    } else {
      good = good && digits.find_first_not_of(allowed, based ? 2 : 0) == std::string::npos;
    }
    if (!good)
      return error(at(bad_literal, span, fmt::format("`{}` is not a number", source_.text(span))));
    if (!floating && !based && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos)
      return error(at(bad_literal, span, "a decimal number begins with 0").help("leave the 0 out"));
    return {};
  }

  Status string() {
    const int begin = at_;
    const char quote = peek();
    const bool long_form = peek(1) == quote && peek(2) == quote;
    at_ += long_form ? 3 : 1;
    std::string said;
    while (at_ < size()) {
      if (peek() == quote && (!long_form || (peek(1) == quote && peek(2) == quote))) {
        at_ += long_form ? 3 : 1;
        out_.push_back({Word::string, {begin, at_}, std::move(said)});
        return {};
      }
      if (peek() == '\n' && !long_form) break;
      if (peek() == '\\') {
        ++at_;
        const char c = peek();
        said += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      } else {
        said += peek();
      }
      ++at_;
    }
    return error(
        at(bad_literal, {begin, begin + (long_form ? 3 : 1)}, "this string is never closed"));
  }

  Status symbol() {
    for (const std::string_view s : symbols) {
      if (text_.substr(at_, s.size()) != s) continue;
      const int begin = at_;
      at_ += static_cast<int>(s.size());
      add(Word::symbol, begin);
      return bracket(out_.back());
    }
    return error(at(bad_syntax, {at_, at_ + 1}, fmt::format("`{}` begins no word", peek())));
  }

  Status bracket(const Token& t) {
    if (t.text == "(" || t.text == "[" || t.text == "{") open_.push_back(t);
    if (t.text != ")" && t.text != "]" && t.text != "}") return {};
    if (open_.empty())
      return error(at(bad_syntax, t.span, fmt::format("`{}` closes nothing", t.text)));
    const Token open = open_.back();
    open_.pop_back();
    if (closing(open.text) == t.text) return {};
    return error(at(bad_syntax, t.span, fmt::format("`{}` closes `{}`", t.text, open.text))
                     .label(source_.label(open.span, "opened here"))
                     .expect("`{}`", closing(open.text)));
  }

  const Source& source_;
  std::string_view text_;
  int at_ = 0;
  bool line_begins_ = true;
  std::vector<int> depths_ = {0};
  std::vector<Token> open_;  // brackets
  std::vector<Token> out_;
};

}  // namespace

Result<std::vector<Token>> tokens(const Source& source) {
  return Lexer(source).run();
}

std::string to_string(const Token& t) {
  switch (t.word) {
    case Word::newline:
      return "the end of the line";
    case Word::indent:
      return "a deeper indentation";
    case Word::dedent:
      return "the end of the block";
    case Word::end:
      return "the end of the file";
    case Word::string:
      return "a string";
    default:
      return "`" + t.text + "`";
  }
}

}  // namespace tessera::syntax
