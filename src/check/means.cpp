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

/// `A[i, k]`, `X[0, j]`, `X[i, j % 64]`, `B[j + 32, k]`: an index a dimension.
struct Named {
  core::TensorId tensor;
  std::vector<std::string> names;  // empty: a number
  std::vector<int64_t> numbers;    // itself, or what is added to the name
  std::vector<int64_t> moduli;     // 0: no remainder is taken
  [[nodiscard]] bool has(std::string_view name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  /// Without what is added to names.
  [[nodiscard]] Named plain() const {
    Named out = *this;
    for (std::size_t d = 0; d < names.size(); ++d)
      if (!names[d].empty()) out.numbers[d] = 0;
    return out;
  }
  friend bool operator==(const Named&, const Named&) = default;
};

/// An index, of a name or none.
struct NamedIndex {
  std::string name;
  int64_t number = 0, modulus = 0;
};

/// `j`, `3`, `j + 32`, `j - 32`, `j % 64`, `(j - 32) % 64`.
// NOLINTNEXTLINE(misc-no-recursion): a remainder is taken once
std::optional<NamedIndex> index_of(const Expr& e) {
  if (const auto* n = e.as<syntax::Name>()) return NamedIndex{n->id};
  if (const auto* i = e.as<syntax::Integer>()) return NamedIndex{"", i->value};
  const auto* b = e.as<syntax::Binary>();
  const auto* by = b == nullptr ? nullptr : b->right->as<syntax::Integer>();
  if (by == nullptr) return std::nullopt;
  std::optional<NamedIndex> of = index_of(*b->left);
  if (!of || of->name.empty() || of->modulus != 0) return std::nullopt;
  if (b->op == "%" && by->value > 0)
    of->modulus = by->value;
  else if ((b->op == "+" || b->op == "-") && of->number == 0)
    of->number = b->op == "+" ? by->value : -by->value;
  else
    return std::nullopt;
  return of;
}

/// A function of an equation before it is known what its names are.
struct NamedCase {
  struct NamedRead {
    Named element;
    bool sum = false;
    friend bool operator==(const NamedRead&, const NamedRead&) = default;
  };
  struct NamedCondition {
    NamedIndex index;
    int64_t below = 0;
    bool holds = true;
  };
  std::vector<NamedCondition> where;
  pointwise::Dag value;
  std::vector<NamedRead> reads;
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
    TESSERA_TRY(to, element(left));
    if (to != to.plain() || to.moduli != std::vector<int64_t>(to.moduli.size(), 0))
      return refuse("an index of the output is neither a name nor a number");
    to_ = std::move(to);
    TESSERA_CHECK(cases(right, {}));
    return name_axes();
  }

  [[nodiscard]] ElementAt a() const { return placed(left_); }
  /// With its sums' right factors as numbers of `factors`, to which new ones are added.
  Result<Output> output(std::vector<ElementAt>& factors) const {
    Output out{placed(to_), {}};
    for (const NamedCase& p : cases_) {
      out.cases.push_back({{}, p.value, {}});
      for (const auto& c : p.where) {
        const auto axis = axes_.find(c.index.name);
        if (axis == axes_.end() || axis->second != Axis::column)
          return refuse("a condition is not about the column");
        out.cases.back().where.push_back(
            {{Axis::column, c.index.number, c.index.modulus}, c.below, c.holds});
      }
      for (const auto& r : p.reads) {
        TESSERA_TRY(read, r.sum ? of_sum(r.element, factors) : of_input(r.element));
        out.cases.back().reads.push_back(std::move(read));
      }
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
      const std::optional<NamedIndex> i = index_of(index);
      if (!i || (!i->name.empty() && out.has(i->name)))
        return refuse(
            fmt::format("the indices of `{}` are not names, each once, and numbers", name->id));
      out.names.push_back(i->name);
      out.numbers.push_back(i->number);
      out.moduli.push_back(i->modulus);
    }
    if (out.names.size() != kernel_[out.tensor].extents.size())
      return refuse(fmt::format("`{}` has not {} dimensions", name->id, out.names.size()));
    return out;
  }

  /// `x if j < 64 else y`: each side is a function of its own.
  // NOLINTNEXTLINE(misc-no-recursion): conditions nest
  Status cases(const Expr& e, std::vector<NamedCase::NamedCondition> where) {
    if (const auto* c = e.as<syntax::Conditional>()) {
      const auto* less = c->condition->as<syntax::Compare>();
      const bool one = less != nullptr && less->values.size() == 2 && less->ops[0] == "<";
      const auto index = one ? index_of(less->values[0]) : std::nullopt;
      const auto* below = one ? less->values[1].as<syntax::Integer>() : nullptr;
      if (!index || index->name.empty() || below == nullptr)
        return refuse("a condition is none of a column below a number");
      where.push_back({*index, below->value, true});
      TESSERA_CHECK(cases(*c->yes, where));
      where.back().holds = false;
      return cases(*c->no, where);
    }
    cases_.push_back({std::move(where), {}, {}});
    TESSERA_TRY(result, node(e));
    NamedCase& which = cases_.back();
    which.value.results = {result};
    if (std::none_of(which.reads.begin(), which.reads.end(), [](const auto& r) { return r.sum; }))
      return refuse("the right side has no sum");
    return {};
  }

  /// The operand that is this.
  int operand(Named element, bool sum) {
    std::vector<NamedCase::NamedRead>& reads = cases_.back().reads;
    const NamedCase::NamedRead read{std::move(element), sum};
    const auto known = std::find(reads.begin(), reads.end(), read);
    const auto place = static_cast<int>(known - reads.begin());
    if (known == reads.end()) reads.push_back(read);
    return cases_.back().value.add_operand(place);
  }

  /// `sum(A[i, k] * B[j, k], k)`. All have one left factor.
  Result<int> sum(const syntax::Call& c) {
    if (c.arguments.size() != 2) return refuse("a sum has not two arguments");
    const auto* times = c.arguments[0].value.as<syntax::Binary>();
    const auto* over = c.arguments[1].value.as<syntax::Name>();
    if (times == nullptr || times->op != "*" || over == nullptr)
      return refuse("the sum is none of a product over one name");
    TESSERA_TRY(left, element(*times->left));
    TESSERA_TRY(right, element(*times->right));
    if (left != left.plain()) return refuse("a number is added to an index of the left factor");
    for (const Named* factor : {&left, &right})
      if (factor->moduli != std::vector<int64_t>(factor->moduli.size(), 0))
        return refuse("a factor is taken at a remainder");
    if (!over_.empty() && (left != left_ || over_ != over->id))
      return refuse("its sums have different left factors");
    left_ = std::move(left);
    over_ = over->id;
    const Named plain = right.plain();
    const auto of_tensor = [&](const Named& n) { return n.tensor == plain.tensor; };
    const auto known = std::find_if(rights_.begin(), rights_.end(), of_tensor);
    if (known != rights_.end() && *known != plain) return refuse("it has two different sums");
    if (known == rights_.end()) rights_.push_back(plain);
    return operand(std::move(right), true);
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
    return cases_.back().value.add_call(f->name, std::move(arguments));
  }

  // NOLINTNEXTLINE(misc-no-recursion): expressions nest
  Result<int> node(const Expr& e) {
    if (const auto* i = e.as<syntax::Integer>())
      return cases_.back().value.add_constant(static_cast<double>(i->value));
    if (const auto* f = e.as<syntax::Float>()) return cases_.back().value.add_constant(f->value);
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
    return operand(std::move(read), false);
  }

  /// What each name is the index of.
  Status name_axes() {
    const Named& first = rights_.front();
    std::vector<std::string> left, right, both;  // the output's names that the factors have
    for (const std::string& n : to_.names) {
      if (n.empty()) continue;
      const bool in_left = left_.has(n), in_right = first.has(n);
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
    if (!both.empty()) axes_[both.front()] = Axis::batch;
    return are_products(right.front());
  }

  /// All names are those of a product, and the right factors have the same.
  [[nodiscard]] Status are_products(const std::string& column) const {
    std::vector<const Named*> all = {&to_, &left_};
    for (const Named& n : rights_) all.push_back(&n);
    bool right = !to_.has(over_) && left_.has(over_);
    for (const Named* n : all)
      for (const std::string& name : n->names) right &= name.empty() || axes_.contains(name);
    for (const Named& n : rights_) {
      right &= n.has(over_) && n.has(column);
      for (const auto& [name, axis] : axes_)
        if (axis == Axis::batch || axis == Axis::row)
          right &= n.has(name) == rights_.front().has(name);
    }
    if (!right) return refuse("its names are not those of a product of matrices");
    return {};
  }

  /// Numbers are added to the column alone.
  [[nodiscard]] Result<Read> of_sum(const Named& right, std::vector<ElementAt>& factors) const {
    Read out{placed(right), 0};
    for (const Index& i : out.element.at)
      if (i.axis != Axis::column && i.axis != Axis::number && i.number != 0)
        return refuse("a number is added to another index of a factor than the column");
    const ElementAt factor = placed(right.plain());
    const auto known = std::find(factors.begin(), factors.end(), factor);
    out.factor = static_cast<int>(known - factors.begin());
    if (known == factors.end()) factors.push_back(factor);
    return out;
  }

  [[nodiscard]] Result<Read> of_input(const Named& e) const {
    const core::Tensor& tensor = kernel_[e.tensor];
    for (const std::string& name : e.names)
      if (!name.empty() && (!axes_.contains(name) || name == over_))
        return refuse(fmt::format("`{}` is no index of the output", name));
    if (tensor.access != core::Access::input)
      return refuse(fmt::format("`{}` is read and is no input", tensor.name));
    Read out{placed(e), -1};
    for (const Index& i : out.element.at)
      if (i.axis == Axis::batch && (i.number != 0 || i.modulus != 0))
        return refuse("a batch is taken at another index than its own");
    return out;
  }

  [[nodiscard]] ElementAt placed(const Named& n) const {
    ElementAt out{n.tensor, {}};
    for (std::size_t d = 0; d < n.names.size(); ++d) {
      const auto axis = axes_.find(n.names[d]);
      out.at.push_back(
          {axis == axes_.end() ? Axis::number : axis->second, n.numbers[d], n.moduli[d]});
    }
    return out;
  }

  const core::Kernel& kernel_;
  Named to_, left_;
  std::vector<Named> rights_;  // without numbers at their columns, each tensor once
  std::string over_;
  std::vector<NamedCase> cases_;
  std::map<std::string, Axis> axes_;
};

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
    const Source source("means", std::string(trim(text)) + "\n");
    const syntax::Parsed parsed = syntax::parse(source);
    if (!parsed.errors.empty() || parsed.module.body.size() != 1)
      return error(wrong(kernel, "it is not one assignment"));
    const auto* assign = parsed.module.body.front().as<syntax::Assign>();
    if (assign == nullptr || assign->targets.size() != 1 || !assign->value || !assign->op.empty())
      return error(wrong(kernel, "it is not one assignment"));
    if (has_softmax(*assign->value)) {
      if (kernel.means.find(';') != std::string::npos)
        return error(wrong(kernel, "attention is not one equation"));
      TESSERA_TRY(attention,
                  attention_of(kernel, assign->targets.front(), *assign->value,
                               [&](std::string_view what) { return wrong(kernel, what); }));
      out.attention = std::move(attention);
      return std::optional(std::move(out));
    }
    Equation e(kernel);
    TESSERA_CHECK(e.read(assign->targets.front(), *assign->value));
    std::vector<ElementAt> factors = out.b;
    TESSERA_TRY(output, e.output(factors));
    std::set<core::TensorId> tensors;
    for (const ElementAt& f : factors) tensors.insert(f.tensor);
    if ((!out.outputs.empty() && e.a() != out.a) || tensors.size() != factors.size())
      return error(wrong(kernel, "its equations have different sums"));
    if (!written.insert(output.to.tensor).second)
      return error(wrong(kernel, "two equations have one output"));
    out.a = e.a();
    out.b = std::move(factors);
    out.outputs.push_back(std::move(output));
  }
  return std::optional(std::move(out));
}

}  // namespace tessera::check
