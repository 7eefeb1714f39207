#include "check/means.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

#include "syntax/parse.h"

namespace tessera::check {
namespace {

using syntax::Expr;

Diagnostic wrong(const core::Kernel& k, std::string_view what) {
  return fail(bad_meaning, "the meaning of `{}` cannot be read: {}", k.name, what)
      .expect("C[i, j] = sum(A[i, k] * B[j, k], k), or a function of the sum")
      .but_found("{}", k.means)
      .help("name tensors of the kernel, with a name or a number for each dimension");
}

/// `A[i, k]`, `X[0, j]`: a name or a number a dimension.
struct Named {
  core::TensorId tensor;
  std::vector<std::string> names;  // empty: a number
  std::vector<int64_t> numbers;
  [[nodiscard]] bool has(std::string_view name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
};

/// Functions that the language names otherwise than pointwise/functions/.
std::string_view function_of(std::string_view name) {
  static const std::map<std::string_view, std::string_view> others = {
      {"+", "add"}, {"-", "sub"},       {"*", "mul"},      {"/", "div"}, {"**", "pow"},
      {"<", "lt"},  {"<=", "le"},       {">", "gt"},       {">=", "ge"}, {"==", "eq"},
      {"!=", "ne"}, {"max", "maximum"}, {"min", "minimum"}};
  const auto found = others.find(name);
  return found == others.end() ? name : found->second;
}

/// One equation before it is known what its names are.
class Equation {
 public:
  explicit Equation(const core::Kernel& k) : kernel_(k) {}

  Status read(const Expr& left, const Expr& right) {
    const auto* c = left.as<syntax::Call>();
    const auto* name = c == nullptr ? nullptr : c->function->as<syntax::Name>();
    const bool adds = name != nullptr && name->id == "sum" && c->arguments.size() == 2;
    if (adds) {
      const auto* slice = c->arguments[1].value.as<syntax::Name>();
      if (slice == nullptr) return refuse("the left side is none of a sum over one name");
      slice_ = slice->id;
    }
    TESSERA_TRY(to, element(adds ? c->arguments[0].value : left));
    to_ = std::move(to);
    TESSERA_TRY(result, node(right));
    value_.results = {result};
    if (over_.empty()) return refuse("the right side has no sum");
    if (in_slices() && (value_.nodes.size() != 1 || !right_.tensor.valid()))
      return refuse("slices add up to something else than a product");
    return right_.tensor.valid() ? name_axes() : name_elements();
  }

  [[nodiscard]] bool in_slices() const { return !slice_.empty(); }

  [[nodiscard]] ElementAt to() const { return placed(to_); }
  [[nodiscard]] ElementAt a() const { return placed(left_); }
  [[nodiscard]] ElementAt b() const { return placed(right_); }
  Result<Output> output() const {
    Output out{to(), value_, {}};
    for (const Named& e : elements_) {
      out.elements.push_back(placed(e));
      for (const std::string& name : e.names)
        if (!name.empty() && (!axes_.contains(name) || name == over_))
          return error(wrong(kernel_, fmt::format("`{}` is no index of the output", name)));
      if (kernel_[e.tensor].access != core::Access::input)
        return error(
            wrong(kernel_, fmt::format("`{}` is read and is no input", kernel_[e.tensor].name)));
    }
    return out;
  }

 private:
  [[nodiscard]] tl::unexpected<Diagnostic> refuse(std::string_view what) const {
    return error(wrong(kernel_, what));
  }

  [[nodiscard]] Result<Named> element(const Expr& e) const {
    const auto* s = e.as<syntax::Subscript>();
    const auto* name = s == nullptr ? nullptr : s->of->as<syntax::Name>();
    if (name == nullptr) return refuse("a factor is no element of a tensor");
    Named out;
    for (std::size_t i = 0; i < kernel_.tensors.size(); ++i)
      if (kernel_.tensors[i].name == name->id) out.tensor = core::TensorId(i);
    if (!out.tensor.valid()) return refuse(fmt::format("there is no tensor `{}`", name->id));
    for (const Expr& index : s->indices) {
      const auto* n = index.as<syntax::Name>();
      const auto* number = index.as<syntax::Integer>();
      if ((n == nullptr && number == nullptr) || (n != nullptr && out.has(n->id)))
        return refuse(
            fmt::format("the indices of `{}` are not names, each once, and numbers", name->id));
      out.names.push_back(n != nullptr ? n->id : "");
      out.numbers.push_back(number != nullptr ? number->value : 0);
    }
    if (out.names.size() != kernel_[out.tensor].extents.size())
      return refuse(fmt::format("`{}` has not {} dimensions", name->id, out.names.size()));
    return out;
  }

  /// `sum(A[i, k] * B[j, k], k)`, or `sum(P[s, i, j], s)`: operand 0. A second one has to be the
  /// same.
  Result<int> sum(const syntax::Call& c) {
    if (c.arguments.size() != 2) return refuse("a sum has not two arguments");
    const Expr& of = c.arguments[0].value;
    const auto* times = of.as<syntax::Binary>();
    const auto* over = c.arguments[1].value.as<syntax::Name>();
    const bool plain = of.as<syntax::Subscript>() != nullptr;
    if ((!plain && (times == nullptr || times->op != "*")) || over == nullptr)
      return refuse("the sum is none of a product over one name");
    TESSERA_TRY(left, element(plain ? of : *times->left));
    Named right;
    if (!plain) {
      TESSERA_TRY(factor, element(*times->right));
      right = std::move(factor);
    }
    const bool same = left.tensor == left_.tensor && left.names == left_.names &&
                      right.tensor == right_.tensor && right.names == right_.names;
    if (!over_.empty() && (!same || over_ != over->id)) return refuse("it has two different sums");
    left_ = std::move(left);
    right_ = std::move(right);
    over_ = over->id;
    return value_.add_operand(0);
  }

  // NOLINTNEXTLINE(misc-no-recursion): expressions nest
  Result<int> call(std::string_view name, const std::vector<const Expr*>& of) {
    const pointwise::Function* f = pointwise::find(function_of(name));
    if (f == nullptr) return refuse(fmt::format("there is no function `{}`", name));
    if (f->arity != static_cast<int>(of.size()))
      return refuse(fmt::format("`{}` takes {} arguments", name, f->arity));
    std::vector<int> arguments;
    for (const Expr* e : of) {
      TESSERA_TRY(i, node(*e));
      arguments.push_back(i);
    }
    return value_.add_call(f->name, std::move(arguments));
  }

  // NOLINTNEXTLINE(misc-no-recursion): expressions nest
  Result<int> node(const Expr& e) {
    if (const auto* i = e.as<syntax::Integer>())
      return value_.add_constant(static_cast<double>(i->value));
    if (const auto* f = e.as<syntax::Float>()) return value_.add_constant(f->value);
    if (const auto* u = e.as<syntax::Unary>(); u != nullptr && u->op == "-")
      return call("neg", {&*u->operand});
    if (const auto* b = e.as<syntax::Binary>()) return call(b->op, {&*b->left, &*b->right});
    if (const auto* c = e.as<syntax::Compare>(); c != nullptr && c->values.size() == 2)
      return call(c->ops[0], {&c->values[0], &c->values[1]});
    if (const auto* c = e.as<syntax::Call>()) {
      const auto* name = c->function->as<syntax::Name>();
      if (name == nullptr) return refuse("a call names no function");
      if (name->id == "sum") return sum(*c);
      std::vector<const Expr*> of;
      for (const syntax::Argument& a : c->arguments) of.push_back(&a.value);
      return call(name->id, of);
    }
    if (e.as<syntax::Subscript>() == nullptr)
      return refuse("something is neither the sum nor an element, a number or a function");
    TESSERA_TRY(read, element(e));
    elements_.push_back(std::move(read));
    return value_.add_operand(static_cast<int>(elements_.size()));
  }

  /// What each name is the index of.
  Status name_axes() {
    std::vector<std::string> left, right, both;  // the output's names that the factors have
    for (const std::string& n : to_.names) {
      if (n.empty() || n == slice_) continue;
      const bool in_left = left_.has(n), in_right = right_.has(n);
      if (in_left || in_right) (in_left && in_right ? both : in_left ? left : right).push_back(n);
    }
    for (std::vector<std::string>* one : {&left, &right})
      if (one->size() == 2 && both.empty()) {
        both = {one->front()};
        one->erase(one->begin());
      }
    if (left.size() != 1 || right.size() != 1 || both.size() > 1)
      return refuse("its names are not those of a product of matrices");
    // The first factor of the text is A, whichever of the output's dimensions comes first.
    axes_ = {{left.front(), Axis::row}, {right.front(), Axis::column}, {over_, Axis::k}};
    if (in_slices() && (!both.empty() || !to_.has(slice_) || left_.has(slice_) ||
                        right_.has(slice_) || slice_ == over_))
      return refuse("slices are not the output's alone");
    if (!both.empty()) axes_[both.front()] = Axis::batch;
    if (in_slices()) axes_[slice_] = Axis::batch;
    for (const Named* n : {&to_, &left_, &right_})
      for (const std::string& name : n->names)
        if (!name.empty() && !axes_.contains(name))
          return refuse("its names are not those of a product of matrices");
    if (to_.has(over_) || !left_.has(over_) || !right_.has(over_))
      return refuse("its names are not those of a product of matrices");
    return {};
  }

  /// Of a sum of elements.
  Status name_elements() {
    std::vector<std::string> names;
    for (const std::string& n : to_.names)
      if (!n.empty()) names.push_back(n);
    if (names.size() != 2 || to_.has(over_) || !left_.has(over_))
      return refuse("its names are not those of a sum of matrices");
    axes_ = {{names[0], Axis::row}, {names[1], Axis::column}, {over_, Axis::k}};
    for (const std::string& n : names)
      if (!left_.has(n)) return refuse("its names are not those of a sum of matrices");
    for (const std::string& n : left_.names)
      if (!n.empty() && !axes_.contains(n))
        return refuse("its names are not those of a sum of matrices");
    return {};
  }

  [[nodiscard]] ElementAt placed(const Named& n) const {
    ElementAt out{n.tensor, {}};
    for (std::size_t d = 0; d < n.names.size(); ++d) {
      const auto axis = axes_.find(n.names[d]);
      out.at.push_back(axis == axes_.end() ? Index{Axis::number, n.numbers[d]}
                                           : Index{axis->second, 0});
    }
    return out;
  }

  const core::Kernel& kernel_;
  Named to_, left_, right_;
  std::string over_, slice_;
  std::vector<Named> elements_;
  pointwise::Dag value_;
  std::map<std::string, Axis> axes_;
};

/// The one statement of a text.
Result<syntax::Parsed> parsed(const core::Kernel& kernel, const std::string& text) {
  const Source source("means", text + "\n");
  syntax::Parsed out = syntax::parse(source);
  if (!out.errors.empty() || out.module.body.size() != 1)
    return error(wrong(kernel, "it is not one assignment"));
  return out;
}

/// Both sides of an equation. Python assigns to no call, so one with a sum on its left is read by
/// halves.
Result<std::pair<Expr, Expr>> sides_of(const core::Kernel& kernel, const std::string& text) {
  if (const std::size_t at = text.find(" = "); text.starts_with("sum(") && at != text.npos) {
    TESSERA_TRY(left, parsed(kernel, text.substr(0, at)));
    TESSERA_TRY(right, parsed(kernel, text.substr(at + 3)));
    const auto* from = left.module.body.front().as<syntax::Evaluate>();
    const auto* to = right.module.body.front().as<syntax::Evaluate>();
    if (from != nullptr && to != nullptr) return std::pair(from->value, to->value);
    return error(wrong(kernel, "its sides are no expressions"));
  }
  TESSERA_TRY(whole, parsed(kernel, text));
  const auto* assign = whole.module.body.front().as<syntax::Assign>();
  if (assign == nullptr || assign->targets.size() != 1 || !assign->value || !assign->op.empty())
    return error(wrong(kernel, "it is not one assignment"));
  return std::pair(assign->targets.front(), *assign->value);
}

}  // namespace

int ElementAt::place(Axis axis) const {
  const auto found =
      std::find_if(at.begin(), at.end(), [&](const Index& i) { return i.axis == axis; });
  return found == at.end() ? -1 : static_cast<int>(found - at.begin());
}

Result<std::optional<Means>> means_of(const core::Kernel& kernel) {
  if (kernel.means.empty()) return std::optional<Means>();
  Means out;
  std::set<core::TensorId> written;
  for (const std::string& text : split(kernel.means, ';')) {
    TESSERA_TRY(sides, sides_of(kernel, std::string(trim(text))));
    const auto& [left, right] = sides;
    if (has_softmax(right)) {
      if (kernel.means.find(';') != std::string::npos)
        return error(wrong(kernel, "attention is not one equation"));
      TESSERA_TRY(attention, attention_of(kernel, left, right, [&](std::string_view what) {
                    return wrong(kernel, what);
                  }));
      out.attention = std::move(attention);
      return std::optional(std::move(out));
    }
    Equation e(kernel);
    TESSERA_CHECK(e.read(left, right));
    TESSERA_TRY(output, e.output());
    if (!out.outputs.empty() && (e.a() != out.a || e.b() != out.b))
      return error(wrong(kernel, "its equations have different sums"));
    if ((e.in_slices() || out.slices) && !out.outputs.empty())
      return error(wrong(kernel, "slices add up to more than one equation"));
    out.slices = e.in_slices();
    if (!written.insert(output.to.tensor).second)
      return error(wrong(kernel, "two equations have one output"));
    out.a = e.a();
    out.b = e.b();
    out.outputs.push_back(std::move(output));
  }
  return std::optional(std::move(out));
}

}  // namespace tessera::check
