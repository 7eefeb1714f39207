// Statements and blocks.
#include "syntax/parser.h"

namespace tessera::syntax {
namespace {

constexpr std::string_view assigning[] = {
    "+=", "-=", "*=", "//=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "@="};

struct Refused {
  std::string_view keyword, what, instead;
};
constexpr Refused refused[] = {
    {"while", "`while` is", "write `for` over a range whose end is known"},
    {"class", "classes are", "write functions"},
    {"try", "exceptions are", "check what a kernel takes where it is called"},
    {"raise", "exceptions are", "state what must hold by `assert`"},
    {"del", "`del` is", "leave the name alone: it ends with its block"},
    {"global", "`global` is", "pass the value as an argument"},
    {"nonlocal", "`nonlocal` is", "pass the value as an argument"},
    {"break", "`break` is", "let the range end where the loop ends, or put the rest under `if`"},
    {"continue", "`continue` is", "put the rest of the loop's body under `if`"},
    {"async", "coroutines are", "write a role: `with role(...):`"},
};

Statement make(Span span, decltype(Statement::node) node) {
  return {.span = span, .node = std::move(node)};
}

}  // namespace

Parsed parse(const Source& source) {
  Parsed out;
  Result<std::vector<Token>> words = tokens(source);
  if (!words) {
    out.errors.push_back(words.error());
    return out;
  }
  out.module.body = Parser(source, std::move(*words)).module(out.errors);
  return out;
}

Block Parser::module(std::vector<Diagnostic>& errors) {
  errors_ = &errors;
  Block body;
  while (!is(Word::end)) {
    Result<Statement> s = statement();
    if (s) {
      body.push_back(std::move(*s));
      continue;
    }
    errors.push_back(s.error());
    recover();
  }
  return body;
}

/// To the next statement: past the line, and past the block that it opens.
void Parser::recover() {
  while (!is(Word::newline) && !is(Word::end)) take();
  if (is(Word::newline)) take();
  if (!is(Word::indent)) return;
  int depth = 0;
  do {
    if (is(Word::indent)) ++depth;
    if (is(Word::dedent)) --depth;
    take();
  } while (depth > 0 && !is(Word::end));
}

Result<Block> Parser::block(std::string_view after) {
  TESSERA_TRY(colon, need(":", after));
  Block body;
  if (!is(Word::newline)) {  // on the same line
    TESSERA_TRY(s, simple());
    body.push_back(std::move(s));
    return body;
  }
  take();
  if (!is(Word::indent))
    return error(fail(bad_indentation, "{} is followed by no block", after)
                     .label(source_.label(peek().span, "to be indented"))
                     .help("indent its statements, or write `pass`"));
  take();
  while (!is(Word::dedent) && !is(Word::end)) {
    Result<Statement> s = statement();
    if (s) {
      body.push_back(std::move(*s));
      continue;
    }
    errors_->push_back(s.error());
    recover();
  }
  if (is(Word::dedent)) take();
  return body;
}

Result<Statement> Parser::statement() {
  if (is(Word::indent))
    return error(fail(bad_indentation, "this line is indented, and no block is open")
                     .label(source_.label(peek(1).span))
                     .help("indent it as the line before"));
  for (const Refused& r : refused)
    if (is(r.keyword)) return error(refuse(peek().span, r.what, r.instead));
  if (is("for") || is("if") || is("with") || is("def") || is("@")) return compound();
  if (is("elif") || is("else"))
    return error(
        fail(bad_syntax, "`{}` follows no `if`", peek().text).label(source_.label(peek().span)));
  return simple();
}

Result<Statement> Parser::compound() {
  const Deeper deeper(*this);
  TESSERA_CHECK(not_too_deep());
  if (is("for")) return for_loop();
  if (is("if")) return branch();
  if (is("with")) return with();
  if (is("def")) return function({});
  return decorated();
}

Status Parser::end_of_line() {
  if (is(";"))
    return error(refuse(peek().span, "several statements on a line are", "give each its own line"));
  if (!is(Word::newline)) return error(wrong("the end of the line"));
  take();
  return {};
}

Result<Statement> Parser::simple() {
  const Span begin = peek().span;
  decltype(Statement::node) node = Pass{};
  if (take_if("pass")) {
  } else if (is("import") || is("from")) {
    TESSERA_TRY(s, import());
    node = std::move(s.node);
  } else if (take_if("return")) {
    Return r;
    if (!is(Word::newline)) {
      TESSERA_TRY(value, expressions());
      r.value = std::move(value);
    }
    node = std::move(r);
  } else if (take_if("assert")) {
    TESSERA_TRY(condition, expression());
    Assert a{.condition = std::move(condition), .message = {}};
    if (take_if(",")) {
      TESSERA_TRY(message, expression());
      a.message = std::move(message);
    }
    node = std::move(a);
  } else {
    TESSERA_TRY(s, assignment());
    node = std::move(s.node);
  }
  const Span span = begin.to(tokens_[at_ == 0 ? 0 : at_ - 1].span);
  TESSERA_CHECK(end_of_line());
  return make(span, std::move(node));
}

Status Parser::assignable(const Expr& e) {
  if (e.as<Name>() != nullptr || e.as<Subscript>() != nullptr) return {};
  if (const auto* t = e.as<Tuple>(); t != nullptr && !t->items.empty()) {
    for (const Expr& item : t->items) TESSERA_CHECK(assignable(item));
    return {};
  }
  return error(fail(bad_syntax, "nothing can be assigned to this")
                   .label(source_.label(e.span))
                   .expect("a name, or several joined by commas"));
}

Result<Statement> Parser::assignment() {
  const Span begin = peek().span;
  TESSERA_TRY(left, expressions());
  const auto targets_of = [](Expr e) {
    auto* t = std::get_if<Tuple>(&e.node);
    if (t != nullptr && t->items.size() > 1) return std::move(t->items);
    std::vector<Expr> one;
    one.push_back(std::move(e));
    return one;
  };
  for (const std::string_view op : assigning) {
    if (!is(op)) continue;
    TESSERA_CHECK(assignable(left));
    take();
    TESSERA_TRY(value, expressions());
    Assign a{.targets = targets_of(std::move(left)),
             .annotation = {},
             .op = std::string(op.substr(0, op.size() - 1)),
             .value = std::move(value)};
    return make(begin, std::move(a));
  }
  if (!is("=") && !is(":")) return make(begin, Evaluate{std::move(left)});
  TESSERA_CHECK(assignable(left));
  Assign a{.targets = {}, .annotation = {}, .op = "", .value = {}};
  if (take_if(":")) {
    TESSERA_TRY(annotation, expression());
    a.annotation = std::move(annotation);
  }
  a.targets = targets_of(std::move(left));
  if (take_if("=")) {
    TESSERA_TRY(value, expressions());
    a.value = std::move(value);
  }
  if (is("="))
    return error(
        refuse(peek().span, "several assignments in one statement are", "write two lines"));
  return make(begin, std::move(a));
}

/// Names joined by commas, up to `in`.
Result<std::vector<Expr>> Parser::targets() {
  std::vector<Expr> all;
  while (true) {
    TESSERA_TRY(name, need_name("the name of a loop's variable"));
    all.push_back({.span = name.span, .node = Name{name.text}});
    if (!take_if(",")) return all;
  }
}

Result<Statement> Parser::for_loop() {
  const Span begin = take().span;
  TESSERA_TRY(names, targets());
  TESSERA_TRY(in, need("in", "the loop's variables"));
  TESSERA_TRY(over, expressions());
  const Span span = begin.to(over.span);
  TESSERA_TRY(body, block("what the loop walks over"));
  if (is("else"))
    return error(refuse(peek().span, "`else` of a loop is", "write it behind the loop"));
  return make(span, For{std::move(names), std::move(over), std::move(body)});
}

Result<Statement> Parser::branch() {
  const Deeper deeper(*this);
  TESSERA_CHECK(not_too_deep());
  const Span begin = take().span;
  TESSERA_TRY(condition, expression());
  const Span span = begin.to(condition.span);
  TESSERA_TRY(body, block("the condition"));
  If made{std::move(condition), std::move(body), {}};
  if (is("elif")) {
    TESSERA_TRY(next, branch());
    made.otherwise.push_back(std::move(next));
  } else if (take_if("else")) {
    TESSERA_TRY(otherwise, block("`else`"));
    made.otherwise = std::move(otherwise);
  }
  return make(span, std::move(made));
}

Result<Statement> Parser::with() {
  const Span begin = take().span;
  With made;
  while (true) {
    TESSERA_TRY(value, expression());
    WithItem item{std::move(value), {}};
    if (take_if("as")) {
      TESSERA_TRY(name, need_name("a name after `as`"));
      item.name = name.text;
    }
    made.items.push_back(std::move(item));
    if (!take_if(",")) break;
  }
  const Span span = begin.to(made.items.back().value.span);
  TESSERA_TRY(body, block("`with`"));
  made.body = std::move(body);
  return make(span, std::move(made));
}

Result<Statement> Parser::decorated() {
  std::vector<Expr> decorators;
  while (take_if("@")) {
    TESSERA_TRY(e, expression());
    TESSERA_CHECK(end_of_line());
    decorators.push_back(std::move(e));
  }
  if (!is("def")) return error(wrong("`def` after a decorator"));
  return function(std::move(decorators));
}

Result<Parameter> Parser::parameter() {
  if (is("*") || is("**") || is("/"))
    return error(refuse(peek().span, "starred parameters are", "name each parameter"));
  TESSERA_TRY(name, need_name("the name of a parameter"));
  Parameter p{.name = name.text, .annotation = {}, .fallback = {}, .span = name.span};
  if (take_if(":")) {
    TESSERA_TRY(annotation, expression());
    p.annotation = std::move(annotation);
  }
  if (take_if("=")) {
    TESSERA_TRY(fallback, expression());
    p.fallback = std::move(fallback);
  }
  return p;
}

Result<Statement> Parser::function(std::vector<Expr> decorators) {
  const Span begin = take().span;
  TESSERA_TRY(name, need_name("the function's name"));
  Function f;
  f.decorators = std::move(decorators);
  f.name = name.text;
  f.name_span = name.span;
  TESSERA_TRY(open, need("(", "the function's name"));
  while (!is(")")) {
    TESSERA_TRY(p, parameter());
    f.parameters.push_back(std::move(p));
    if (!take_if(",")) break;
  }
  TESSERA_TRY(close, need(")", "the parameters"));
  if (take_if("->")) {
    TESSERA_TRY(returns, expression());
    f.returns = std::move(returns);
  }
  TESSERA_TRY(body, block("the function's head"));
  f.body = std::move(body);
  return make(begin.to(close.span), std::move(f));
}

Result<std::string> Parser::dotted() {
  TESSERA_TRY(first, need_name("the name of a module"));
  std::string name = first.text;
  while (take_if(".")) {
    TESSERA_TRY(next, need_name("a name after `.`"));
    name += "." + next.text;
  }
  return name;
}

Result<Statement> Parser::import() {
  const Token word = take();
  Import made;
  made.from = word.text == "from";
  if (!made.from) {
    do {
      TESSERA_TRY(name, dotted());
      std::string as;
      if (take_if("as")) {
        TESSERA_TRY(alias, need_name("a name after `as`"));
        as = alias.text;
      }
      made.names.emplace_back(std::move(name), std::move(as));
    } while (take_if(","));
    return make(word.span, std::move(made));
  }
  TESSERA_TRY(module, dotted());
  made.module = std::move(module);
  TESSERA_TRY(import_word, need("import", "the module's name"));
  if (take_if("*")) {
    made.names.emplace_back("*", "");
    return make(word.span, std::move(made));
  }
  const bool bracketed = take_if("(");
  do {
    if (bracketed && is(")")) break;
    TESSERA_TRY(name, need_name("what to import"));
    std::string as;
    if (take_if("as")) {
      TESSERA_TRY(alias, need_name("a name after `as`"));
      as = alias.text;
    }
    made.names.emplace_back(name.text, std::move(as));
  } while (take_if(","));
  if (bracketed) TESSERA_CHECK(need(")", "the imported names"));
  return make(word.span, std::move(made));
}

}  // namespace tessera::syntax
