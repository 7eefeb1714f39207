#include "check/attention_means.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "pointwise/pointwise.h"
#include "term/facts.h"

namespace tessera::check {
namespace {

using core::Term;
using syntax::Expr;
using term::Op;

const std::string* name_of(const Expr& e) {
  const auto* n = e.as<syntax::Name>();
  return n == nullptr ? nullptr : &n->id;
}

/// `f(...)` with so many arguments.
const syntax::Call* call_of(const Expr& e, std::string_view f, std::size_t arguments) {
  const auto* c = e.as<syntax::Call>();
  const std::string* name = c == nullptr ? nullptr : name_of(*c->function);
  return name != nullptr && *name == f && c->arguments.size() == arguments ? c : nullptr;
}

std::optional<double> number(const Expr& e);

/// The side of `x if a > b else y` that numbers decide; null: they do not.
// NOLINTNEXTLINE(misc-no-recursion): expressions nest
const Expr* side_of(const syntax::Conditional& c) {
  const auto* test = c.condition->as<syntax::Compare>();
  if (test == nullptr || test->values.size() != 2) return nullptr;
  const std::optional<double> x = number(test->values[0]), y = number(test->values[1]);
  if (!x || !y || (test->ops[0] != ">" && test->ops[0] != "==")) return nullptr;
  return (test->ops[0] == ">" ? *x > *y : *x == *y) ? &*c.yes : &*c.no;
}

/// The value of an expression of numbers alone.
// NOLINTNEXTLINE(misc-no-recursion): expressions nest
std::optional<double> number(const Expr& e) {
  if (const auto* i = e.as<syntax::Integer>()) return static_cast<double>(i->value);
  if (const auto* f = e.as<syntax::Float>()) return f->value;
  if (const std::string* n = name_of(e)) {
    if (*n == "inf") return std::numeric_limits<double>::infinity();
    if (*n == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  if (const auto* u = e.as<syntax::Unary>()) {
    const std::optional<double> of = number(*u->operand);
    if (!of || u->op != "-") return std::nullopt;
    return -*of;
  }
  if (const auto* c = e.as<syntax::Conditional>()) {
    const Expr* side = side_of(*c);
    return side == nullptr ? std::nullopt : number(*side);
  }
  const auto* b = e.as<syntax::Binary>();
  if (b == nullptr) return std::nullopt;
  const std::optional<double> x = number(*b->left), y = number(*b->right);
  if (!x || !y) return std::nullopt;
  if (b->op == "+") return *x + *y;
  if (b->op == "-") return *x - *y;
  if (b->op == "*") return *x * *y;
  if (b->op == "/") return *x / *y;
  if (b->op == "**") return std::pow(*x, *y);
  return std::nullopt;
}

Term operation(term::Pool& pool, const std::string& op, Term a, Term b) {
  static const std::map<std::string, Op, std::less<>> all = {
      {"+", Op::add},         {"-", Op::subtract},      {"*", Op::multiply},    {"//", Op::divide},
      {"%", Op::remainder},   {"and", Op::logical_and}, {"or", Op::logical_or}, {"<", Op::less},
      {"<=", Op::less_equal}, {"==", Op::equal},        {"!=", Op::not_equal}};
  if (op == ">" || op == ">=") return operation(pool, op == ">" ? "<" : "<=", b, a);
  const auto found = all.find(op);
  if (found == all.end()) return {};
  const Result<Term> out = pool.make(found->second, {a, b});
  return out ? *out : Term();
}

/// One equation, taken apart.
class Reader {
 public:
  Reader(const core::Kernel& k, const std::function<Diagnostic(std::string_view)>& wrong)
      : kernel_(k), wrong_(wrong) {}

  Result<Attention> read(const Expr& left, const Expr& right) {
    TESSERA_CHECK(element(left, out_.o));
    const syntax::Call* sum = call_of(right, "sum", 2);
    const auto* times = sum == nullptr ? nullptr : sum->arguments[0].value.as<syntax::Binary>();
    const std::string* key = sum == nullptr ? nullptr : name_of(sum->arguments[1].value);
    if (times == nullptr || times->op != "*" || key == nullptr)
      return refuse("softmax stands in no sum of softmax(scores, j) * V[.., j, e] over j");
    out_.key = *key;
    const syntax::Call* weights = call_of(*times->left, "softmax", 2);
    if (weights == nullptr) {
      weights = call_of(*times->left, "softmax", 3);
      TESSERA_CHECK(of_empty_rows(weights));
    }
    const std::string* over = weights == nullptr ? nullptr : name_of(weights->arguments[1].value);
    if (over == nullptr || *over != out_.key)
      return refuse("the weights are no softmax over the index of the sum");
    TESSERA_CHECK(element(*times->right, out_.v));
    TESSERA_CHECK(masked(weights->arguments[0].value));
    TESSERA_CHECK(roles());
    return std::move(out_);
  }

 private:
  [[nodiscard]] tl::unexpected<Diagnostic> refuse(std::string_view what) const {
    return error(wrong_(what));
  }

  Status element(const Expr& e, IndexedBy& out) const {
    const auto* s = e.as<syntax::Subscript>();
    const std::string* name = s == nullptr ? nullptr : name_of(*s->of);
    if (name == nullptr) return refuse("a factor is no element of a tensor");
    for (std::size_t i = 0; i < kernel_.tensors.size(); ++i)
      if (kernel_.tensors[i].name == *name) out.tensor = core::TensorId(i);
    if (!out.tensor.valid()) return refuse(fmt::format("there is no tensor `{}`", *name));
    out.at = s->indices;
    if (out.at.size() != kernel_[out.tensor].extents.size())
      return refuse(fmt::format("`{}` has not {} dimensions", *name, out.at.size()));
    return {};
  }

  /// The third argument of a softmax.
  Status of_empty_rows(const syntax::Call* weights) {
    if (weights == nullptr) return {};
    const std::optional<double> empty = number(weights->arguments[2].value);
    out_.empty_is_zero = empty == 0;
    if (empty && (out_.empty_is_zero || std::isnan(*empty))) return {};
    return refuse("a row that sees no key is neither 0 nor nan");
  }

  /// where(seen, scores, -inf), or scores alone.
  Status masked(const Expr& e) {
    const syntax::Call* choice = call_of(e, "where", 3);
    if (choice == nullptr) return biased(e);
    const std::optional<double> other = number(choice->arguments[2].value);
    if (!other || !std::isinf(*other) || *other > 0)
      return refuse("keys that are not seen have another score than -inf");
    out_.seen = choice->arguments[0].value;
    return biased(choice->arguments[1].value);
  }

  /// Scores, perhaps with a mask added.
  Status biased(const Expr& e) {
    const auto* b = e.as<syntax::Binary>();
    if (b == nullptr || b->op != "+") return scaled(e);
    TESSERA_CHECK(scaled(*b->left));
    return bias(*b->right);
  }

  /// An element, or 0 and -inf by its truth value; 0 alone is none.
  // NOLINTNEXTLINE(misc-no-recursion): expressions nest
  Status bias(const Expr& e) {
    if (const auto* c = e.as<syntax::Conditional>()) {
      const Expr* side = side_of(*c);
      return side == nullptr ? Status(refuse("a choice of masks that no numbers decide"))
                             : bias(*side);
    }
    if (number(e) == 0) return {};
    const syntax::Call* choice = call_of(e, "where", 3);
    const auto fill = choice == nullptr ? std::nullopt : number(choice->arguments[2].value);
    if (choice != nullptr &&
        (number(choice->arguments[1].value) != 0 || !fill || !std::isinf(*fill) || *fill > 0))
      return refuse("a mask of truth values is no where(M[..], 0, -inf)");
    out_.mask.emplace();
    out_.adds = choice == nullptr;
    TESSERA_CHECK(element(out_.adds ? e : choice->arguments[0].value, *out_.mask));
    const DType of = kernel_[out_.mask->tensor].element;
    const bool floating = of == DType::float32 || of == DType::bfloat16 || of == DType::float16;
    return (out_.adds ? floating : of == DType::boolean)
               ? Status()
               : refuse("a mask that is added has float elements, and one of where has b1");
  }

  /// scale * sum(Q * K, d), in either order; or the sum alone. The same of a tanh of these.
  // NOLINTNEXTLINE(misc-no-recursion): expressions nest
  Status scaled(const Expr& e) {
    if (const auto* c = e.as<syntax::Conditional>()) {
      const Expr* side = side_of(*c);
      return side == nullptr ? Status(refuse("a choice of scores that no numbers decide"))
                             : scaled(*side);
    }
    if (const syntax::Call* capped = call_of(e, "tanh", 1)) {
      if (out_.inner > 0) return refuse("scores are capped twice");
      const double cap = std::exchange(out_.scale, 1);
      out_.inner = 1;  // until the scale of what it takes is read
      TESSERA_CHECK(scaled(capped->arguments[0].value));
      out_.inner = std::exchange(out_.scale, cap);
      return {};
    }
    if (const auto* b = e.as<syntax::Binary>(); b != nullptr && (b->op == "*" || b->op == "/")) {
      std::optional<double> by = number(*b->left);
      const bool first = by.has_value() && b->op == "*";
      if (!first) by = number(*b->right);
      if (!by || !(*by > 0) || !std::isfinite(*by)) return refuse("the scale is no number above 0");
      out_.scale *= b->op == "/" ? 1 / *by : *by;
      return scaled(first ? *b->right : *b->left);
    }
    const syntax::Call* sum = call_of(e, "sum", 2);
    const auto* times = sum == nullptr ? nullptr : sum->arguments[0].value.as<syntax::Binary>();
    const std::string* depth = sum == nullptr ? nullptr : name_of(sum->arguments[1].value);
    if (times == nullptr || times->op != "*" || depth == nullptr)
      return refuse("the scores are no sum(Q[.., i, d] * K[.., j, d], d), perhaps scaled");
    out_.depth = *depth;
    TESSERA_CHECK(element(*times->left, out_.q));
    return element(*times->right, out_.k);
  }

  /// Which of the output's names are the row and the column.
  Status roles() {
    for (const Expr& e : out_.o.at) {
      const std::string* n = name_of(e);
      if (n == nullptr || *n == out_.key || *n == out_.depth || names_.contains(*n))
        return refuse("the indices of the output are no names, each once");
      names_.emplace(*n, kernel_.pool->constant(0));
      if (out_.v.place(*n) >= 0 && out_.q.place(*n) < 0) out_.column = *n;
      if (out_.q.place(*n) >= 0 && out_.k.place(*n) < 0 && !mentions(out_.k, *n)) out_.row = *n;
    }
    const bool all = !out_.row.empty() && !out_.column.empty() && out_.k.place(out_.key) >= 0 &&
                     out_.v.place(out_.key) >= 0 && out_.q.place(out_.depth) >= 0 &&
                     out_.k.place(out_.depth) >= 0 && !mentions(out_.v, out_.row);
    if (!all) return refuse("its names are not those of attention");
    Names known = names_;
    known.erase(out_.row);
    known.erase(out_.column);
    for (const auto& [of, own] : {std::pair{&out_.q, std::pair{out_.row, out_.depth}},
                                  {&out_.k, {out_.key, out_.depth}},
                                  {&out_.v, {out_.key, out_.column}}})
      for (const Expr& e : of->at) {
        const std::string* n = name_of(e);
        if (n != nullptr && (*n == own.first || *n == own.second)) continue;
        if (!term_of(kernel_, e, known))
          return refuse("an index is no expression of batches and parameters");
      }
    std::vector<const IndexedBy*> read = {&out_.q, &out_.k, &out_.v};
    if (out_.mask) read.push_back(&*out_.mask);
    for (const IndexedBy* of : read)
      if (kernel_[of->tensor].access != core::Access::input)
        return refuse(fmt::format("`{}` is read and is no input", kernel_[of->tensor].name));
    TESSERA_CHECK(mask());
    return seen();
  }

  Status mask() {
    Names known = names_;
    known.erase(out_.column);
    known.emplace(out_.key, kernel_.pool->constant(0));
    for (const Expr& e : out_.mask ? out_.mask->at : std::vector<Expr>())
      if (!term_of(kernel_, e, known))
        return refuse("an index of the mask is no expression of batches, row and key");
    return {};
  }

  Status seen() {
    if (!out_.seen) return {};
    Names known = names_;
    known.erase(out_.column);
    known.emplace(out_.key, kernel_.pool->constant(0));
    const Term t = term_of(kernel_, *out_.seen, known);
    if (!t || !t->predicate()) return refuse("what is seen is no condition on rows and keys");
    if (rounds(*out_.seen)) return refuse("what is seen has a quotient or a remainder in it");
    return {};
  }

  /// Whether there is a quotient or a remainder: bounds on rows and keys have to be linear.
  // NOLINTNEXTLINE(misc-no-recursion): expressions nest
  static bool rounds(const Expr& e) {
    if (const auto* u = e.as<syntax::Unary>()) return rounds(*u->operand);
    if (const auto* b = e.as<syntax::Binary>())
      return b->op == "//" || b->op == "%" || rounds(*b->left) || rounds(*b->right);
    const auto* c = e.as<syntax::Compare>();
    return c != nullptr && std::any_of(c->values.begin(), c->values.end(),
                                       [](const Expr& of) { return rounds(of); });
  }

  [[nodiscard]] bool mentions(const IndexedBy& of, const std::string& name) const {
    Names others;
    for (const Expr& e : out_.o.at)
      if (const std::string* n = name_of(e); n != nullptr && *n != name)
        others.emplace(*n, kernel_.pool->constant(0));
    others.emplace(out_.key, kernel_.pool->constant(0));
    others.emplace(out_.depth, kernel_.pool->constant(0));
    for (const Expr& e : of.at)
      if (!term_of(kernel_, e, others)) return true;
    return false;
  }

  const core::Kernel& kernel_;
  const std::function<Diagnostic(std::string_view)>& wrong_;
  Attention out_;
  Names names_;
};

}  // namespace

int IndexedBy::place(std::string_view name) const {
  for (std::size_t d = 0; d < at.size(); ++d)
    if (const std::string* n = name_of(at[d]); n != nullptr && *n == name)
      return static_cast<int>(d);
  return -1;
}

// NOLINTNEXTLINE(misc-no-recursion): expressions nest
Term term_of(const core::Kernel& kernel, const Expr& e, const Names& names) {
  term::Pool& pool = *kernel.pool;
  if (const auto* i = e.as<syntax::Integer>()) return pool.constant(i->value);
  if (const std::string* n = name_of(e)) {
    if (const auto found = names.find(*n); found != names.end()) return found->second;
    for (Term p : kernel.parameters)
      if (p->symbol->name == *n) return p;
    return {};
  }
  if (const auto* u = e.as<syntax::Unary>()) {
    const Term of = u->op == "-" ? term_of(kernel, *u->operand, names) : Term();
    return of && !of->predicate() ? operation(pool, "-", pool.constant(0), of) : Term();
  }
  if (const auto* c = e.as<syntax::Compare>()) {
    Term out;
    for (std::size_t i = 0; i + 1 < c->values.size(); ++i) {
      const Term a = term_of(kernel, c->values[i], names),
                 b = term_of(kernel, c->values[i + 1], names);
      const Term one = a && b ? operation(pool, c->ops[i], a, b) : Term();
      if (!one) return {};
      out = out ? term::logical_and(out, one) : one;
    }
    return out;
  }
  const auto* b = e.as<syntax::Binary>();
  if (b == nullptr) return {};
  const Term x = term_of(kernel, *b->left, names), y = term_of(kernel, *b->right, names);
  return x && y ? operation(pool, b->op, x, y) : Term();
}

// NOLINTNEXTLINE(misc-no-recursion): expressions nest
std::optional<int64_t> value_of(const Expr& e, const Numbers& numbers) {
  if (const auto* i = e.as<syntax::Integer>()) return i->value;
  if (const std::string* n = name_of(e)) {
    const auto found = numbers.find(*n);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  const auto apply = [](std::string_view op, int64_t a, int64_t b) -> std::optional<int64_t> {
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if ((op == "//" || op == "%") && b < 1) return std::nullopt;
    if (op == "//") return term::floor_quotient(a, b);
    if (op == "%") return term::floor_remainder(a, b);
    if (op == "and" || op == "or")
      return static_cast<int64_t>(op == "and" ? a != 0 && b != 0 : a != 0 || b != 0);
    if (op == "<" || op == ">=") return static_cast<int64_t>((a < b) == (op == "<"));
    if (op == "<=" || op == ">") return static_cast<int64_t>((a <= b) == (op == "<="));
    if (op == "==" || op == "!=") return static_cast<int64_t>((a == b) == (op == "=="));
    return std::nullopt;
  };
  if (const auto* u = e.as<syntax::Unary>(); u != nullptr && u->op == "-") {
    const std::optional<int64_t> of = value_of(*u->operand, numbers);
    return of ? std::optional(-*of) : std::nullopt;
  }
  if (const auto* c = e.as<syntax::Compare>()) {
    bool all = true;
    for (std::size_t i = 0; i + 1 < c->values.size(); ++i) {
      const auto a = value_of(c->values[i], numbers), b = value_of(c->values[i + 1], numbers);
      const auto one = a && b ? apply(c->ops[i], *a, *b) : std::nullopt;
      if (!one) return std::nullopt;
      all = all && *one != 0;
    }
    return static_cast<int64_t>(all);
  }
  const auto* b = e.as<syntax::Binary>();
  if (b == nullptr) return std::nullopt;
  const auto x = value_of(*b->left, numbers), y = value_of(*b->right, numbers);
  return x && y ? apply(b->op, *x, *y) : std::nullopt;
}

// NOLINTNEXTLINE(misc-no-recursion): expressions nest
bool has_softmax(const Expr& e) {
  if (const auto* b = e.as<syntax::Binary>())
    return has_softmax(*b->left) || has_softmax(*b->right);
  const auto* c = e.as<syntax::Call>();
  if (c == nullptr) return false;
  if (const std::string* n = name_of(*c->function); n != nullptr && *n == "softmax") return true;
  for (const syntax::Argument& a : c->arguments)
    if (has_softmax(a.value)) return true;
  return false;
}

Result<Attention> attention_of(const core::Kernel& kernel, const Expr& left, const Expr& right,
                               const std::function<Diagnostic(std::string_view)>& wrong) {
  return Reader(kernel, wrong).read(left, right);
}

}  // namespace tessera::check
