#include <algorithm>
#include <cmath>

#include "language/elaborator.h"
#include "term/facts.h"

namespace tessera::language {
namespace {

using term::Op;

const std::map<std::string_view, Op>& term_ops() {
  static const std::map<std::string_view, Op> ops = {
      {"+", Op::add},          {"-", Op::subtract},    {"*", Op::multiply},
      {"//", Op::divide},      {"%", Op::remainder},   {"^", Op::bit_xor},
      {"&", Op::bit_and},      {"|", Op::bit_or},      {"<<", Op::shift_left},
      {">>", Op::shift_right}, {"==", Op::equal},      {"!=", Op::not_equal},
      {"<", Op::less},         {"<=", Op::less_equal}, {"and", Op::logical_and},
      {"or", Op::logical_or},  {"min", Op::min},       {"max", Op::max}};
  return ops;
}
const std::map<std::string_view, std::string_view>& pointwise_ops() {
  static const std::map<std::string_view, std::string_view> ops = {
      {"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"}, {"**", "pow"}, {"<", "lt"},
      {">", "gt"},  {"<=", "le"}, {">=", "ge"}, {"==", "eq"}, {"!=", "ne"}};
  return ops;
}

bool is_elements(const Value& v) {
  return v.as<Fragment>() != nullptr || v.as<Elementwise>() != nullptr;
}
bool is_number(const Value& v) {
  return v.as<int64_t>() != nullptr || v.as<Term>() != nullptr;
}

/// Of known integers; nothing where it has no value in 64 bits.
std::optional<int64_t> known(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "-") return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "*") return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == "//" && b > 0) return term::floor_quotient(a, b);
  if (op == "%" && b > 0) return term::floor_remainder(a, b);
  if (op == "^") return a ^ b;
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "<<" && b >= 0 && b < 62 && std::abs(a) < (int64_t{1} << (62 - b)))
    return a * (int64_t{1} << b);
  if (op == ">>" && b >= 0 && b < 63) return a >> b;
  if (op == "min") return std::min(a, b);
  if (op == "max") return std::max(a, b);
  return {};
}
std::optional<double> known(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/" && b != 0) return a / b;
  if (op == "**") return std::pow(a, b);
  return {};
}
template <class T>
std::optional<bool> ordered(std::string_view op, const T& a, const T& b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return {};
}

std::optional<double> real(const Value& v) {
  if (const auto* d = v.as<double>()) return *d;
  if (const auto* n = v.as<int64_t>()) return static_cast<double>(*n);
  return {};
}

bool same_input(const Elementwise::Input& a, const Elementwise::Input& b) {
  if (a.from.index() != b.from.index() || a.version != b.version) return false;
  if (const auto* t = std::get_if<Term>(&a.from)) return *t == std::get<Term>(b.from);
  const auto& x = std::get<Fragment>(a.from);
  const auto& y = std::get<Fragment>(b.from);
  return x.id == y.id && x.whole == y.whole && x.first == y.first && x.steps == y.steps;
}

/// The shape of both, where one element stands for all along a dimension.
std::optional<std::vector<int64_t>> together(const std::vector<int64_t>& a,
                                             const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return {};
  std::vector<int64_t> out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return {};
    out.push_back(std::max(a[i], b[i]));
  }
  return out;
}

Position moved(Position p, std::string_view op, int64_t by) {
  const auto move = [&](Term t) { return op == "+" ? t + by : t - by; };
  p.index = move(p.index);
  p.start = p.index * p.size;
  if (p.stages > 0) p.count = move(p.count);
  return p;
}

}  // namespace

Result<Term> Elaborator::number(const Value& v, Span span) {
  if (const auto* n = v.as<int64_t>()) return builder_->number(*n);
  if (const auto* t = v.as<Term>(); t != nullptr && !(*t)->predicate()) return *t;
  Diagnostic d = fail(wrong_kind, "an integer is needed here")
                     .label(label(span, std::string(kind_of(v))))
                     .expect("an integer")
                     .but_found("{}", kind_of(v));
  if (v.as<Position>() != nullptr)
    return error(std::move(d).help("say which of its integers: `.index`, `.start` or `.size`"));
  return error(std::move(d).help("write one, or name an integer of the launch"));
}

Result<Value> Elaborator::terms(std::string_view op, Term a, Term b, Span span) {
  auto made = builder_->kernel().pool->make(term_ops().at(op), {a, b});
  if (!made) return error(std::move(made.error()).label(label(span)));
  return Value{*made};
}

Result<Value> Elaborator::unary(std::string_view op, const Value& v, Span span) {
  if (op == "not") {
    if (const bool* b = v.as<bool>()) return Value{!*b};
    if (const auto* t = v.as<Term>(); t != nullptr && (*t)->predicate())
      return Value{builder_->make(Op::logical_not, {*t})};
  } else if (op == "-") {
    if (const auto* n = v.as<int64_t>()) return Value{-*n};
    if (const auto* d = v.as<double>()) return Value{-*d};
    if (v.as<Term>() != nullptr) return binary("-", Value{int64_t{0}}, v, span);
    if (is_elements(v)) return apply("neg", {&v}, span);
  } else if (op == "+" && (real(v) || is_elements(v))) {
    return v;
  } else if (op == "~") {
    if (const auto* n = v.as<int64_t>()) return Value{~*n};
  }
  return error(fail(wrong_kind, "`{}` has no meaning here", op)
                   .label(label(span))
                   .but_found("{}", kind_of(v))
                   .help("it takes numbers{}", op == "not" ? " that are true or false" : ""));
}

Result<Value> Elaborator::binary(std::string_view op, const Value& a, const Value& b, Span span) {
  const auto refuse = [&](std::string_view help) {
    return error(fail(wrong_kind, "`{}` has no meaning between these", op)
                     .label(label(span))
                     .but_found("{} {} {}", kind_of(a), op, kind_of(b))
                     .help("{}", help));
  };
  if (is_elements(a) || is_elements(b)) {
    const auto f = pointwise_ops().find(op);
    if (f == pointwise_ops().end())
      return refuse("elements have + - * / ** and functions: `exp(x)`");
    return apply(f->second, {&a, &b}, span);
  }
  const auto* x = a.as<int64_t>();
  const auto* y = b.as<int64_t>();
  if (x != nullptr && y != nullptr) {
    if (op == "/") return refuse("integers are divided by `//`");
    if (const auto out = known(op, *x, *y)) return Value{*out};
    return error(fail(wrong_kind, "`{}` has no value here", source_->text(span))
                     .label(label(span))
                     .but_found("{} {} {}", *x, op, *y)
                     .help("divisors are at least 1, and numbers have 64 bits"));
  }
  if (real(a) && real(b)) {
    if (const auto out = known(op, *real(a), *real(b))) return Value{*out};
    return refuse("numbers with a point have + - * / **");
  }
  if (const auto* p = a.as<Position>()) {
    if (y != nullptr && (op == "+" || op == "-")) return Value{moved(*p, op, *y)};
    return refuse("a turn moves by `+ 1`; else say `.index` or `.start`");
  }
  if (b.as<Position>() != nullptr) return refuse("say `.index` or `.start` of the turn");
  if (is_number(a) && is_number(b) && term_ops().count(op) != 0) {
    TESSERA_TRY(left, number(a, span));
    TESSERA_TRY(right, number(b, span));
    return terms(op, left, right, span);
  }
  return refuse("integers have + - * // % ^ & | << >>");
}

Result<Value> Elaborator::compare(std::string_view op, const Value& a, const Value& b, Span span) {
  if (is_elements(a) || is_elements(b)) return binary(op, a, b, span);
  std::optional<bool> out;
  if (a.as<int64_t>() != nullptr && b.as<int64_t>() != nullptr)
    out = ordered(op, *a.as<int64_t>(), *b.as<int64_t>());
  else if (real(a) && real(b))
    out = ordered(op, *real(a), *real(b));
  else if (a.as<DType>() != nullptr && b.as<DType>() != nullptr && (op == "==" || op == "!="))
    out = ordered(op, *a.as<DType>(), *b.as<DType>());
  else if (a.as<std::string>() != nullptr && b.as<std::string>() != nullptr)
    out = ordered(op, *a.as<std::string>(), *b.as<std::string>());
  else if (a.as<bool>() != nullptr && b.as<bool>() != nullptr && (op == "==" || op == "!="))
    out = ordered(op, *a.as<bool>(), *b.as<bool>());
  if (out) return Value{*out};
  if (is_number(a) && is_number(b) && (term_ops().count(op) != 0 || op == ">" || op == ">=")) {
    TESSERA_TRY(left, number(a, span));
    TESSERA_TRY(right, number(b, span));
    if (op == ">" || op == ">=") return terms(op == ">" ? "<" : "<=", right, left, span);
    return terms(op, left, right, span);
  }
  const bool position = a.as<Position>() != nullptr || b.as<Position>() != nullptr;
  return error(fail(wrong_kind, "these cannot be compared")
                   .label(label(span))
                   .expect("two integers, or two values of one kind")
                   .but_found("{} {} {}", kind_of(a), op, kind_of(b))
                   .help("{}", position ? "say `.index` or `.start` of the turn"
                                        : "compare integers with integers"));
}

Result<std::variant<bool, Term>> Elaborator::condition(const syntax::Expr& e) {
  TESSERA_TRY(v, evaluate(e));
  if (const bool* known = v.as<bool>()) return *known;
  if (const auto* t = v.as<Term>(); t != nullptr && (*t)->predicate()) return *t;
  return error(fail(wrong_kind, "a condition is true or false")
                   .label(label(e.span, std::string(kind_of(v))))
                   .but_found("{}", kind_of(v))
                   .help("compare it: `{} != 0`", source_->text(e.span)));
}

Result<Value> Elaborator::apply(std::string_view function,
                                const std::vector<const Value*>& operands, Span span) {
  Elementwise out;
  std::vector<int> arguments;
  bool any = false;
  for (const Value* v : operands) {
    if (const auto x = real(*v)) {
      arguments.push_back(out.dag.add_constant(*x));
      continue;
    }
    TESSERA_TRY(e, elementwise(*v, span));
    if (!e.tile.empty()) {
      const auto tile = any ? together(out.tile, e.tile) : std::optional(e.tile);
      if (!tile)
        return error(fail(wrong_shape, "elements of tiles of two shapes do not go together")
                         .label(label(span))
                         .but_found("{} and {}", shape_text(out.tile), shape_text(e.tile))
                         .help("take parts of one shape"));
      if (!any || size_of(e.element) > size_of(out.element)) out.element = e.element;
      out.tile = *tile;
      any = true;
    }
    arguments.push_back(append(out, e));
  }
  out.dag.results = {out.dag.add_call(function, arguments)};
  return Value{std::move(out)};
}

int Elaborator::append(Elementwise& to, const Elementwise& e) {
  std::vector<int> operands, nodes;
  for (const Elementwise::Input& in : e.inputs) {
    const auto same = std::find_if(to.inputs.begin(), to.inputs.end(),
                                   [&](const Elementwise::Input& i) { return same_input(i, in); });
    operands.push_back(static_cast<int>(same - to.inputs.begin()));
    if (same == to.inputs.end()) to.inputs.push_back(in);
  }
  for (const pointwise::Dag::Node& n : e.dag.nodes) {
    using Kind = pointwise::Dag::Node::Kind;
    if (n.kind == Kind::operand) {
      nodes.push_back(to.dag.add_operand(operands.at(n.operand)));
    } else if (n.kind == Kind::constant) {
      nodes.push_back(to.dag.add_constant(n.constant));
    } else {
      std::vector<int> arguments;
      for (int a : n.arguments) arguments.push_back(nodes.at(a));
      nodes.push_back(to.dag.add_call(n.function->name, arguments));
    }
  }
  return nodes.at(e.dag.results.front());
}

}  // namespace tessera::language
