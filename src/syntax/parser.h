// How parse.cpp and parse_expression.cpp go through the words; nobody else includes this.
#pragma once

#include "syntax/parse.h"

namespace tessera::syntax {

class Parser {
 public:
  Parser(const Source& source, std::vector<Token> tokens)
      : source_(source), tokens_(std::move(tokens)) {}

  // parse_expression.cpp
  Result<Expr> expression();
  /// `a, b` is a tuple.
  Result<Expr> expressions();
  // parse.cpp
  Block module(std::vector<Diagnostic>& errors);

  [[nodiscard]] const Token& peek(int ahead = 0) const {
    const std::size_t i = std::min(at_ + static_cast<std::size_t>(ahead), tokens_.size() - 1);
    return tokens_[i];
  }
  [[nodiscard]] bool is(std::string_view text, int ahead = 0) const {
    const Token& t = peek(ahead);
    return (t.word == Word::symbol || t.word == Word::keyword) && t.text == text;
  }
  [[nodiscard]] bool is(Word word) const { return peek().word == word; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take_if(std::string_view text) {
    if (!is(text)) return false;
    take();
    return true;
  }
  Result<Token> need(std::string_view text, std::string_view after);
  Result<Token> need_name(std::string_view what);
  /// `expected` stands where the next word is.
  [[nodiscard]] Diagnostic wrong(std::string_view expected) const;
  [[nodiscard]] Diagnostic refuse(Span span, std::string_view what, std::string_view instead) const;

 private:
  /// Counts how deep the text nests, so that none overflows the stack.
  struct Deeper {
    explicit Deeper(Parser& p) : parser(p) { ++parser.depth_; }
    ~Deeper() { --parser.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Parser& parser;
  };
  /// Fails where it nests too deep; `turns`: of a chain of operators, which is a deep tree, too.
  Status not_too_deep(int turns = 0);
  Result<Expr> named();
  Result<Expr> conditional();
  Result<Expr> lambda();
  Result<Expr> logical(std::string_view op);
  Result<Expr> negation();
  Result<Expr> comparison();
  Result<std::string> comparing();
  Result<Expr> binary(std::size_t level);
  Result<Expr> unary();
  Result<Expr> power();
  Result<Expr> primary();
  Result<Expr> atom();
  Result<Expr> number();
  Result<Expr> bracketed();
  Result<Expr> list();
  Result<std::vector<Argument>> arguments();
  Result<Expr> index();
  Result<std::vector<Expr>> items(std::string_view end);

  Result<Block> block(std::string_view after);
  Result<Statement> statement();
  Result<Statement> compound();
  Result<Statement> simple();
  Result<Statement> assignment();
  Result<Statement> for_loop();
  Result<Statement> branch();
  Result<Statement> with();
  Result<Statement> function(std::vector<Expr> decorators);
  Result<Statement> decorated();
  Result<Parameter> parameter();
  Result<Statement> import();
  Result<std::string> dotted();
  Result<std::vector<Expr>> targets();
  Status assignable(const Expr& e);
  Status end_of_line();
  void recover();

  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<Diagnostic>* errors_ = nullptr;
};

}  // namespace tessera::syntax
