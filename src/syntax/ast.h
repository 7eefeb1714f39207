// The tree of a kernel file: Python's syntax, the part of it that the language has, with the place
// of everything.
//
// Nodes are values: a tree is copied and compared whole; comparing ignores places. What a name
// means, which calls there are and what they take is not syntax: the language's own tables say it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "diag/source.h"

namespace tessera::syntax {

/// A T on the heap that is copied and compared as a value; trees hold their children in it.
template <class T>
class Box {
 public:
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}  // NOLINT: as a T
  Box(const Box& other) : value_(std::make_unique<T>(*other)) {}
  Box(Box&& other) noexcept = default;
  Box& operator=(const Box& other) {
    if (this != &other) value_ = std::make_unique<T>(*other);
    return *this;
  }
  Box& operator=(Box&& other) noexcept = default;
  ~Box() = default;
  const T& operator*() const { return *value_; }
  T& operator*() { return *value_; }
  const T* operator->() const { return value_.get(); }
  T* operator->() { return value_.get(); }
  friend bool operator==(const Box& a, const Box& b) { return *a == *b; }

 private:
  std::unique_ptr<T> value_;
};

struct Expr;

struct Name {
  std::string id;
  friend bool operator==(const Name&, const Name&) = default;
};
struct Integer {
  int64_t value = 0;
  friend bool operator==(const Integer&, const Integer&) = default;
};
struct Float {
  double value = 0;
  friend bool operator==(const Float&, const Float&) = default;
};
struct String {
  std::string value;
  friend bool operator==(const String&, const String&) = default;
};
enum class Constant : uint8_t { none, truth, falsehood, ellipsis };
/// `-x`, `+x`, `~x`, `not x`.
struct Unary {
  std::string op;
  Box<Expr> operand;
  friend bool operator==(const Unary&, const Unary&) = default;
};
/// Arithmetic, bits, `and` and `or`.
struct Binary {
  std::string op;
  Box<Expr> left, right;
  friend bool operator==(const Binary&, const Binary&) = default;
};
/// `a < b <= c`: one operator between two neighbours.
struct Compare {
  std::vector<Expr> values;
  std::vector<std::string> ops;
  friend bool operator==(const Compare&, const Compare&);
};
struct Argument;
struct Call {
  Box<Expr> function;
  std::vector<Argument> arguments;
  friend bool operator==(const Call&, const Call&);
};
struct Attribute {
  Box<Expr> of;
  std::string name;
  friend bool operator==(const Attribute&, const Attribute&) = default;
};
/// `a[i, j:k]`; one index without comma is one index.
struct Subscript {
  Box<Expr> of;
  std::vector<Expr> indices;
  friend bool operator==(const Subscript&, const Subscript&);
};
/// `a:b:c` inside a subscript.
struct Slice {
  std::optional<Box<Expr>> from, to, step;
  friend bool operator==(const Slice&, const Slice&) = default;
};
struct Tuple {
  std::vector<Expr> items;
  friend bool operator==(const Tuple&, const Tuple&);
};
struct List {
  std::vector<Expr> items;
  friend bool operator==(const List&, const List&);
};
struct Lambda {
  std::vector<std::string> parameters;
  Box<Expr> body;
  friend bool operator==(const Lambda&, const Lambda&) = default;
};
/// `a if c else b`.
struct Conditional {
  Box<Expr> condition, yes, no;
  friend bool operator==(const Conditional&, const Conditional&) = default;
};
/// `(x := e)`.
struct Named {
  std::string name;
  Box<Expr> value;
  friend bool operator==(const Named&, const Named&) = default;
};

struct Expr {
  Span span;
  std::variant<Name, Integer, Float, String, Constant, Unary, Binary, Compare, Call, Attribute,
               Subscript, Slice, Tuple, List, Lambda, Conditional, Named>
      node;

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&node);
  }
  friend bool operator==(const Expr& a, const Expr& b) { return a.node == b.node; }
};

struct Argument {
  std::string keyword;  // empty: by position
  Expr value;
  Span span;
  friend bool operator==(const Argument& a, const Argument& b) {
    return a.keyword == b.keyword && a.value == b.value;
  }
};

inline bool operator==(const Compare& a, const Compare& b) {
  return a.values == b.values && a.ops == b.ops;
}
inline bool operator==(const Call& a, const Call& b) {
  return a.function == b.function && a.arguments == b.arguments;
}
inline bool operator==(const Subscript& a, const Subscript& b) {
  return a.of == b.of && a.indices == b.indices;
}
inline bool operator==(const Tuple& a, const Tuple& b) {
  return a.items == b.items;
}
inline bool operator==(const List& a, const List& b) {
  return a.items == b.items;
}

struct Statement;
using Block = std::vector<Statement>;

/// `a, b = e`, `x: T = e` (one target), `x += e` (op `+`).
struct Assign {
  std::vector<Expr> targets;  // several: the value is taken apart
  std::optional<Expr> annotation;
  std::string op;
  std::optional<Expr> value;  // absent only beside an annotation
  friend bool operator==(const Assign&, const Assign&) = default;
};
struct Evaluate {
  Expr value;
  friend bool operator==(const Evaluate&, const Evaluate&) = default;
};
struct For {
  std::vector<Expr> targets;
  Expr over;
  Block body;
  friend bool operator==(const For&, const For&);
};
/// `elif` is an If alone in `otherwise`.
struct If {
  Expr condition;
  Block body, otherwise;
  friend bool operator==(const If&, const If&);
};
struct WithItem {
  Expr value;
  std::optional<std::string> name;
  friend bool operator==(const WithItem&, const WithItem&) = default;
};
struct With {
  std::vector<WithItem> items;
  Block body;
  friend bool operator==(const With&, const With&);
};
struct Return {
  std::optional<Expr> value;
  friend bool operator==(const Return&, const Return&) = default;
};
struct Assert {
  Expr condition;
  std::optional<Expr> message;
  friend bool operator==(const Assert&, const Assert&) = default;
};
struct Pass {
  friend bool operator==(Pass, Pass) = default;
};
/// `import a.b as c`, `from a.b import c as d, e`, `from a import *` (a name `*`).
struct Import {
  std::string module;
  bool from = false;
  std::vector<std::pair<std::string, std::string>> names;  // name, as; of `import`: the module's
  friend bool operator==(const Import&, const Import&) = default;
};
struct Parameter {
  std::string name;
  std::optional<Expr> annotation, fallback;
  Span span;
  friend bool operator==(const Parameter& a, const Parameter& b) {
    return a.name == b.name && a.annotation == b.annotation && a.fallback == b.fallback;
  }
};
struct Function {
  std::vector<Expr> decorators;
  std::string name;
  Span name_span;
  std::vector<Parameter> parameters;
  std::optional<Expr> returns;
  Block body;
  friend bool operator==(const Function&, const Function&);
};

struct Statement {
  Span span;  // of a compound one: its head
  std::variant<Assign, Evaluate, For, If, With, Return, Assert, Pass, Import, Function> node;

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&node);
  }
  friend bool operator==(const Statement& a, const Statement& b) { return a.node == b.node; }
};

inline bool operator==(const For& a, const For& b) {
  return a.targets == b.targets && a.over == b.over && a.body == b.body;
}
inline bool operator==(const If& a, const If& b) {
  return a.condition == b.condition && a.body == b.body && a.otherwise == b.otherwise;
}
inline bool operator==(const With& a, const With& b) {
  return a.items == b.items && a.body == b.body;
}
inline bool operator==(const Function& a, const Function& b) {
  return a.decorators == b.decorators && a.name == b.name && a.parameters == b.parameters &&
         a.returns == b.returns && a.body == b.body;
}

struct Module {
  Block body;
  friend bool operator==(const Module&, const Module&) = default;
};

}  // namespace tessera::syntax
