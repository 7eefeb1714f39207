#include "check/means.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

#include "check/means_names.h"

namespace tessera::check {
namespace {

using syntax::Expr;

Diagnostic wrong(const core::Kernel& k, std::string_view what) {
  return fail(bad_meaning, "the meaning of `{}` cannot be read: {}", k.name, what)
      .expect("C[i, j] = sum(A[i, k] * B[j, k], k), a function of the sum, or of elements alone")
      .but_found("{}", k.means)
      .help("name tensors of the kernel, with a name or a number for each dimension");
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
    if (!to.as_it_is()) return refuse("an index of the output is neither a name nor a number");
    to_ = std::move(to);
    TESSERA_CHECK(cases(right, {}));
    const auto sums = [](const NamedCase& c) {
      return std::any_of(c.reads.begin(), c.reads.end(), [](const auto& r) { return r.sum; });
    };
    if (!over_.empty() && !std::all_of(cases_.begin(), cases_.end(), sums))
      return refuse("a sum is not part of all cases");
    const bool product = cases_.size() == 1 && cases_[0].value.nodes.size() == 1 && multiplies() &&
                         cases_[0].reads[0].element.as_it_is();
    if (in_slices() && !product) return refuse("slices add up to something else than a product");
    if (over_.empty()) return name_output();
    return multiplies() ? name_axes() : name_elements();
  }

  [[nodiscard]] bool in_slices() const { return !slice_.empty(); }
  /// Its sums are of products, and not of elements.
  [[nodiscard]] bool multiplies() const { return !rights_.empty(); }

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
        TESSERA_TRY(read, !r.sum         ? of_input(r.element)
                          : multiplies() ? of_sum(r.element, factors)
                                         : Result<Read>(Read{placed(r.element), 0}));
        out.cases.back().reads.push_back(std::move(read));
      }
    }
    return out;
  }

 private:
  [[nodiscard]] tl::unexpected<Diagnostic> refuse(std::string_view what) const {
    return error(wrong(kernel_, what));
  }

  [[nodiscard]] Result<NamedElement> element(const Expr& e) const {
    const auto* s = e.as<syntax::Subscript>();
    const auto* name = s == nullptr ? nullptr : s->of->as<syntax::Name>();
    if (name == nullptr) return refuse("a factor is no element of a tensor");
    NamedElement out;
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
    cases_.back().value.results = {result};
    return {};
  }

  /// The operand that is this.
  int operand(NamedElement element, bool sum) {
    std::vector<NamedCase::NamedRead>& reads = cases_.back().reads;
    const NamedCase::NamedRead read{std::move(element), sum};
    const auto known = std::find(reads.begin(), reads.end(), read);
    const auto place = static_cast<int>(known - reads.begin());
    if (known == reads.end()) reads.push_back(read);
    return cases_.back().value.add_operand(place);
  }

  /// `sum(A[i, k] * B[j, k], k)`: all have one left factor. Or `sum(P[s, i, j], s)`: all are this.
  Result<int> sum(const syntax::Call& c) {
    if (c.arguments.size() != 2) return refuse("a sum has not two arguments");
    const Expr& of = c.arguments[0].value;
    const auto* times = of.as<syntax::Binary>();
    const auto* over = c.arguments[1].value.as<syntax::Name>();
    const bool plain = of.as<syntax::Subscript>() != nullptr;
    if ((!plain && (times == nullptr || times->op != "*")) || over == nullptr)
      return refuse("the sum is none of a product over one name");
    TESSERA_TRY(left, element(plain ? of : *times->left));
    if (left != left.plain()) return refuse("a number is added to an index of the left factor");
    NamedElement right;
    if (!plain) {
      TESSERA_TRY(factor, element(*times->right));
      right = std::move(factor);
    }
    for (const NamedElement* factor : {&left, &right})
      if (factor->moduli != std::vector<int64_t>(factor->moduli.size(), 0))
        return refuse("a factor is taken at a remainder");
    if (!over_.empty() && (left != left_ || over_ != over->id || plain == multiplies()))
      return refuse("its sums have different left factors");
    left_ = std::move(left);
    over_ = over->id;
    if (plain) return operand(left_, true);
    const NamedElement at_column = right.plain();
    const auto of_tensor = [&](const NamedElement& n) { return n.tensor == at_column.tensor; };
    const auto known = std::find_if(rights_.begin(), rights_.end(), of_tensor);
    if (known != rights_.end() && *known != at_column) return refuse("it has two different sums");
    if (known == rights_.end()) rights_.push_back(at_column);
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
    const NamedElement& first = rights_.front();
    std::vector<std::string> left, right, both;  // the output's names that the factors have
    for (const std::string& n : to_.names) {
      if (n.empty() || n == slice_) continue;
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
    if (in_slices() && (!both.empty() || !to_.has(slice_) || left_.has(slice_) ||
                        first.has(slice_) || slice_ == over_))
      return refuse("slices are not the output's alone");
    if (!both.empty()) axes_[both.front()] = Axis::batch;
    if (in_slices()) axes_[slice_] = Axis::batch;
    return are_products(right.front());
  }

  /// All names are those of a product, and the right factors have the same.
  [[nodiscard]] Status are_products(const std::string& column) const {
    std::vector<const NamedElement*> all = {&to_, &left_};
    for (const NamedElement& n : rights_) all.push_back(&n);
    bool right = !to_.has(over_) && left_.has(over_);
    for (const NamedElement* n : all)
      for (const std::string& name : n->names) right &= name.empty() || axes_.contains(name);
    for (const NamedElement& n : rights_) {
      right &= n.has(over_) && n.has(column);
      for (const auto& [name, axis] : axes_)
        if (axis == Axis::batch || axis == Axis::row)
          right &= n.has(name) == rights_.front().has(name);
    }
    if (!right) return refuse("its names are not those of a product of matrices");
    return {};
  }

  /// Numbers are added to the column alone.
  [[nodiscard]] Result<Read> of_sum(const NamedElement& right,
                                    std::vector<ElementAt>& factors) const {
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

  [[nodiscard]] Result<Read> of_input(const NamedElement& e) const {
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

  /// Of functions without sums: what the output's indices are goes by their order.
  Status name_output() {
    constexpr Axis batch_first[] = {Axis::batch, Axis::row, Axis::column};
    std::vector<std::string> names;
    for (const std::string& n : to_.names)
      if (!n.empty()) names.push_back(n);
    if (names.size() != 2 && names.size() != 3)
      return refuse("an output without a sum has not two names, or three with a batch");
    for (std::size_t i = 0; i < names.size(); ++i)
      axes_[names[i]] = batch_first[3 - names.size() + i];
    return {};
  }

  /// Of a sum of elements.
  Status name_elements() {
    std::vector<std::string> names;
    for (const std::string& n : to_.names)
      if (!n.empty()) names.push_back(n);
    if (names.size() != 2 || to_.has(over_) || !left_.has(over_))
      return refuse("its names are not those of a sum of matrices");
    for (const NamedCase& c : cases_)
      if (!c.where.empty() || !std::all_of(c.reads.begin(), c.reads.end(),
                                           [](const auto& r) { return r.element.as_it_is(); }))
        return refuse("a function of sums of elements is not the same for all columns");
    axes_ = {{names[0], Axis::row}, {names[1], Axis::column}, {over_, Axis::k}};
    for (const std::string& n : names)
      if (!left_.has(n)) return refuse("its names are not those of a sum of matrices");
    for (const std::string& n : left_.names)
      if (!n.empty() && !axes_.contains(n))
        return refuse("its names are not those of a sum of matrices");
    return {};
  }

  [[nodiscard]] ElementAt placed(const NamedElement& n) const {
    ElementAt out{n.tensor, {}};
    for (std::size_t d = 0; d < n.names.size(); ++d) {
      const auto axis = axes_.find(n.names[d]);
      out.at.push_back(
          {axis == axes_.end() ? Axis::number : axis->second, n.numbers[d], n.moduli[d]});
    }
    return out;
  }

  const core::Kernel& kernel_;
  NamedElement to_, left_;
  std::vector<NamedElement> rights_;  // without numbers at their columns, each tensor once
  std::string over_, slice_;
  std::vector<NamedCase> cases_;
  std::map<std::string, Axis> axes_;
};

}  // namespace

int ElementAt::place(Axis axis) const {
  const auto found =
      std::find_if(at.begin(), at.end(), [&](const Index& i) { return i.axis == axis; });
  return found == at.end() ? -1 : static_cast<int>(found - at.begin());
}

int64_t Means::column_shift() const {
  std::optional<int64_t> least;
  for (const Output& o : outputs)
    for (const Case& c : o.cases)
      for (const Read& r : c.reads) {
        if (r.factor < 0) continue;
        const int place = r.element.place(Axis::column);
        const int64_t added = place < 0 ? 0 : r.element.at[static_cast<std::size_t>(place)].number;
        if (!least || std::abs(added) < std::abs(*least)) least = added;
      }
  return least.value_or(0);
}

Result<std::optional<Means>> means_of(const core::Kernel& kernel) {
  if (kernel.means.empty()) return std::optional<Means>();
  Means out;
  std::set<core::TensorId> written;
  for (const std::string& text : split(kernel.means, ';')) {
    const auto sides = sides_of(std::string(trim(text)));
    if (!sides) return error(wrong(kernel, sides.error()));
    const auto& [left, right] = *sides;
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
    std::vector<ElementAt> factors = out.b;
    TESSERA_TRY(output, e.output(factors));
    std::set<core::TensorId> tensors;
    for (const ElementAt& f : factors) tensors.insert(f.tensor);
    const bool other_sums = e.a() != out.a || e.multiplies() != out.multiplies();
    if ((!out.outputs.empty() && other_sums) || tensors.size() != factors.size())
      return error(wrong(kernel, "its equations have different sums"));
    if ((e.in_slices() || out.slices) && !out.outputs.empty())
      return error(wrong(kernel, "slices add up to more than one equation"));
    out.slices = e.in_slices();
    if (!written.insert(output.to.tensor).second)
      return error(wrong(kernel, "two equations have one output"));
    out.a = e.a();
    out.b = std::move(factors);
    out.outputs.push_back(std::move(output));
  }
  return std::optional(std::move(out));
}

}  // namespace tessera::check
