#include "syntax/testing/print.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::syntax {
namespace {

// How tightly an expression binds, as Python's grammar has it.
enum Tightness : int {
  tuple,
  assigned,
  conditional,
  disjunction,
  conjunction,
  negation,
  comparison,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  sign,
  power,
  atom
};

int tightness(std::string_view op) {
  if (op == "or") return disjunction;
  if (op == "and") return conjunction;
  if (op == "|") return bit_or;
  if (op == "^") return bit_xor;
  if (op == "&") return bit_and;
  if (op == "<<" || op == ">>") return shift;
  if (op == "+" || op == "-") return sum;
  return op == "**" ? power : product;
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  }
  return out + "\"";
}

std::string number(double v) {
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

struct Writer {
  std::string out;
  int depth = 0;

  static std::string list(const std::vector<Expr>& all) {
    std::string s;
    for (const Expr& e : all) s += (s.empty() ? "" : ", ") + text(e, assigned);
    return s;
  }
  static std::string tuple_text(const std::vector<Expr>& items) {
    return "(" + list(items) + (items.size() == 1 ? ",)" : ")");
  }

  /// Bracketed where it binds less tightly than `least`.
  static std::string text(const Expr& e, int least) {
    int own = atom;
    std::string s = std::visit([&](const auto& node) { return of(node, own); }, e.node);
    return own < least ? "(" + s + ")" : s;
  }

  static std::string of(const Name& n, int&) { return n.id; }
  static std::string of(const Integer& n, int& own) {
    if (n.value < 0) own = sign;
    return std::to_string(n.value);
  }
  static std::string of(const Float& n, int&) { return number(n.value); }
  static std::string of(const String& n, int&) { return quoted(n.value); }
  static std::string of(const Constant& n, int&) {
    return n == Constant::none        ? "None"
           : n == Constant::truth     ? "True"
           : n == Constant::falsehood ? "False"
                                      : "...";
  }
  static std::string of(const Unary& n, int& own) {
    own = n.op == "not" ? negation : sign;
    return n.op + (n.op == "not" ? " " : "") + text(*n.operand, own);
  }
  static std::string of(const Binary& n, int& own) {
    own = tightness(n.op);
    // All but the power join to the left.
    if (n.op == "**") return text(*n.left, atom) + " ** " + text(*n.right, sign);
    return text(*n.left, own) + " " + n.op + " " + text(*n.right, own + 1);
  }
  static std::string of(const Compare& n, int& own) {
    own = comparison;
    std::string s = text(n.values[0], bit_or);
    for (std::size_t i = 0; i < n.ops.size(); ++i)
      s += " " + n.ops[i] + " " + text(n.values[i + 1], bit_or);
    return s;
  }
  static std::string of(const Call& n, int&) {
    std::string s;
    for (const Argument& a : n.arguments)
      s += (s.empty() ? "" : ", ") + (a.keyword.empty() ? "" : a.keyword + "=") +
           text(a.value, a.keyword.empty() ? assigned : conditional);
    return text(*n.function, atom) + "(" + s + ")";
  }
  static std::string of(const Attribute& n, int&) {
    const bool plain = n.of->as<Integer>() == nullptr && n.of->as<Float>() == nullptr;
    return (plain ? text(*n.of, atom) : "(" + text(*n.of, tuple) + ")") + "." + n.name;
  }
  static std::string of(const Subscript& n, int&) {
    std::string s = list(n.indices);
    return text(*n.of, atom) + "[" + s + "]";
  }
  static std::string of(const Slice& n, int& own) {
    own = atom;
    const auto part = [](const std::optional<Box<Expr>>& e) {
      return e ? text(**e, conditional) : std::string();
    };
    return part(n.from) + ":" + part(n.to) + (n.step ? ":" + part(n.step) : "");
  }
  static std::string of(const Tuple& n, int&) { return tuple_text(n.items); }
  static std::string of(const List& n, int&) { return "[" + list(n.items) + "]"; }
  static std::string of(const Lambda& n, int& own) {
    own = conditional;
    const std::string parameters = fmt::format("{}", fmt::join(n.parameters, ", "));
    return "lambda" + (parameters.empty() ? "" : " " + parameters) + ": " +
           text(*n.body, conditional);
  }
  static std::string of(const Conditional& n, int& own) {
    own = conditional;
    return text(*n.yes, disjunction) + " if " + text(*n.condition, disjunction) + " else " +
           text(*n.no, conditional);
  }
  static std::string of(const Named& n, int& own) {
    own = tuple;
    return n.name + " := " + text(*n.value, conditional);
  }

  void line(const std::string& s) {
    out += std::string(std::size_t{4} * static_cast<std::size_t>(depth), ' ') + s + "\n";
  }
  void block(const Block& b) {
    ++depth;
    for (const Statement& s : b) statement(s);
    if (b.empty()) line("pass");
    --depth;
  }
  void statement(const Statement& s) {
    std::visit([&](const auto& node) { write(node); }, s.node);
  }
  void write(const Assign& a) {
    std::string s;
    for (const Expr& t : a.targets) s += (s.empty() ? "" : ", ") + text(t, assigned);
    if (a.annotation) s += ": " + text(*a.annotation, conditional);
    if (a.value) s += " " + a.op + "= " + text(*a.value, conditional);
    line(s);
  }
  void write(const Evaluate& e) { line(text(e.value, conditional)); }
  void write(const For& f) {
    line("for " + list(f.targets) + " in " + text(f.over, conditional) + ":");
    block(f.body);
  }
  void write(const If& i) { branch(i, "if "); }
  void branch(const If& i, const std::string& word) {
    line(word + text(i.condition, conditional) + ":");
    block(i.body);
    if (i.otherwise.empty()) return;
    const If* next = i.otherwise.size() == 1 ? i.otherwise[0].as<If>() : nullptr;
    if (next != nullptr) return branch(*next, "elif ");
    line("else:");
    block(i.otherwise);
  }
  void write(const With& w) {
    std::string s;
    for (const WithItem& item : w.items)
      s += (s.empty() ? "" : ", ") + text(item.value, conditional) +
           (item.name ? " as " + *item.name : "");
    line("with " + s + ":");
    block(w.body);
  }
  void write(const Return& r) {
    line(r.value ? "return " + text(*r.value, conditional) : "return");
  }
  void write(const Assert& a) {
    line("assert " + text(a.condition, conditional) +
         (a.message ? ", " + text(*a.message, conditional) : ""));
  }
  void write(Pass) { line("pass"); }
  void write(const Import& i) {
    std::string s;
    for (const auto& [name, as] : i.names)
      s += (s.empty() ? "" : ", ") + name + (as.empty() ? "" : " as " + as);
    line(i.from ? "from " + i.module + " import " + s : "import " + s);
  }
  void write(const Function& f) {
    for (const Expr& d : f.decorators) line("@" + text(d, conditional));
    std::string s;
    for (const Parameter& p : f.parameters) {
      s += (s.empty() ? "" : ", ") + p.name;
      if (p.annotation) s += ": " + text(*p.annotation, conditional);
      if (p.fallback) s += (p.annotation ? " = " : "=") + text(*p.fallback, conditional);
    }
    line("def " + f.name + "(" + s + ")" +
         (f.returns ? " -> " + text(*f.returns, conditional) : "") + ":");
    block(f.body);
  }
};

}  // namespace

std::string to_string(const Expr& e) {
  return Writer::text(e, assigned);
}

std::string to_string(const Module& m) {
  Writer w;
  for (const Statement& s : m.body) {
    if (!w.out.empty() && s.as<Function>() != nullptr) w.out += "\n\n";
    w.statement(s);
  }
  return w.out;
}

}  // namespace tessera::syntax
