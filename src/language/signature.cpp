// What stands between `def` and the body: constants, integers and tensors of the launch.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "language/elaborator.h"
#include "language/means_text.h"

namespace tessera::language {
namespace {

bool is_name(const std::optional<syntax::Expr>& e, std::string_view name) {
  const auto* n = e ? e->as<syntax::Name>() : nullptr;
  return n != nullptr && n->id == name;
}

}  // namespace

Result<Value> Elaborator::override_of(const syntax::Parameter& p, const Constant& c) {
  const bool function = is_name(p.annotation, "fn");
  if (const auto* n = std::get_if<int64_t>(&c)) {
    if (!function) return Value{*n};
  } else {
    const std::string& name = std::get<std::string>(c);
    if (const auto t = parse_dtype(name); t && !function) return Value{*t};
    const auto v = named(name);
    if (const Bound* b = find(name); b != nullptr && function) return b->value;
    if (v && function) {
      const auto* of_elements = v->as<PointwiseRef>();
      return of_elements == nullptr ? *v : Value{PointwiseRef{of_elements->function, true}};
    }
    double number = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end && std::isfinite(number) && !function)
      return Value{number};
  }
  return error(fail(bad_constant, "`{}` cannot be what it is set to", p.name)
                   .label(label(p.span))
                   .expect("{}", function
                                     ? "the name of a function of the file or of single elements"
                                     : "a number or an element type")
                   .but_found("{}", std::holds_alternative<int64_t>(c)
                                        ? std::to_string(std::get<int64_t>(c))
                                        : "`" + std::get<std::string>(c) + "`")
                   .help("the default shows what it takes"));
}

/// Of a text the constant of that name, where Python does not know it by its name alone.
Value Elaborator::of_constant(const Value& v) const {
  const auto* name = v.as<std::string>();
  const Bound* const b = name == nullptr ? nullptr : find(*name);
  return b == nullptr ? v : b->value;
}

Status Elaborator::constant_parameter(const syntax::Parameter& p) {
  Value value;
  if (const auto set = options_.constants.find(p.name); set != options_.constants.end()) {
    TESSERA_TRY(v, override_of(p, set->second));
    value = v;
  } else if (p.fallback) {
    TESSERA_TRY(v, evaluate(*p.fallback));
    value = of_constant(v);
  } else {
    return error(fail(bad_constant, "`{}` has no value", p.name)
                     .label(label(p.span))
                     .help("give it a default, or set it where the kernel is named"));
  }
  return bind(p.name, std::move(value), p.span);
}

Result<Value> Elaborator::index_parameter(const syntax::Parameter& p, const IndexType& t) {
  const Term term = builder_->parameter(p.name, t.at_least, t.below, t.multiple);
  TESSERA_CHECK(builder_failure(p.span));
  TESSERA_CHECK(bind(p.name, {term}, p.span));
  return Value{term};
}

Term Elaborator::extent(const std::variant<std::string, int64_t>& e) {
  if (const auto* n = std::get_if<int64_t>(&e)) return builder_->number(*n);
  const std::string& name = std::get<std::string>(e);
  if (const Bound* b = find(name)) {
    if (const auto* t = b->value.as<Term>()) return *t;
    if (const auto* n = b->value.as<int64_t>()) return builder_->number(*n);
  }
  const IndexType any;
  const Term t = builder_->parameter(name, any.at_least, any.below, any.multiple);
  frames_.back().names[name] = {{t}, {}};
  return t;
}

Result<Value> Elaborator::tensor_parameter(const syntax::Parameter& p, const TensorType& t) {
  core::Tensor tensor{.name = fresh(p.name), .element = t.element, .access = t.access};
  for (const auto& e : t.extents) tensor.extents.push_back(extent(e));
  if (t.strides.empty()) {
    Term stride = builder_->number(1);
    tensor.strides.assign(t.extents.size(), stride);
    for (std::size_t i = t.extents.size(); i-- > 0;) {
      tensor.strides[i] = stride;
      if (i > 0)
        stride = stride == builder_->number(1) ? tensor.extents[i] : stride * tensor.extents[i];
    }
  } else {
    for (const auto& e : t.strides) tensor.strides.push_back(extent(e));
  }
  tensor.span = p.span;
  const core::TensorId id = builder_->tensor(std::move(tensor));
  TESSERA_CHECK(builder_failure(p.span));
  if (std::find(t.has.begin(), t.has.end(), false) == t.has.end()) return Value{TensorRef{id}};
  means_ = without_dimensions(means_, p.name, t.has);
  return Value{TensorRef{id, t.has}};
}

Status Elaborator::decorators() {
  for (const syntax::Expr& d : kernel_.decorators) {
    const auto* call = d.as<syntax::Call>();
    if (call == nullptr) continue;
    for (const syntax::Argument& a : call->arguments) {
      if (a.keyword == "means") {
        TESSERA_TRY(v, evaluate(a.value));
        const auto* text = v.as<std::string>();
        if (text == nullptr)
          return error(fail(wrong_call, "`means` of `@kernel` is no text")
                           .label(label(a.value.span))
                           .expect("means=\"C[i, j] = sum(A[i, k] * B[j, k], k)\"")
                           .help("write what the kernel computes between quotes"));
        means_ = *text;
        continue;
      }
      TESSERA_TRY(v, evaluate(a.value));
      v = of_constant(v);
      const auto* n = v.as<int64_t>();
      int* const what = a.keyword == "threads"      ? &threads_asked_
                        : a.keyword == "cluster"    ? &cluster_
                        : a.keyword == "min_blocks" ? &min_blocks_
                                                    : nullptr;
      if (what == nullptr)
        return error(fail(wrong_call, "`@kernel` takes no `{}`",
                          a.keyword.empty() ? "argument without a name" : a.keyword)
                         .label(label(a.span))
                         .expect("threads, cluster, min_blocks, means")
                         .help("write `@kernel(threads=128)`"));
      const bool warps = a.keyword != "threads" || (n != nullptr && *n % 32 == 0 && *n <= 1024);
      if (n == nullptr || *n < 1 || *n > 1024 || !warps)
        return error(
            fail(bad_constant, "`{}` of `@kernel` is no such number", a.keyword)
                .label(label(a.value.span))
                .expect("{}",
                        a.keyword == "threads" ? "a multiple of 32 up to 1024" : "a number from 1")
                .but_found("{}", n == nullptr ? std::string(kind_of(v)) : std::to_string(*n))
                .help("a warp has 32 threads, a block at most 1024"));
      *what = static_cast<int>(*n);
    }
  }
  return {};
}

/// An integer that neither the body nor a tensor names.
bool Elaborator::unused(const syntax::Parameter& p) const {
  const auto* call = p.annotation ? p.annotation->as<syntax::Call>() : nullptr;
  const auto* type = call == nullptr ? nullptr : call->function->as<syntax::Name>();
  return type != nullptr && type->id == "index" && measured_.named &&
         measured_.named->count(p.name) == 0;
}

Status Elaborator::signature() {
  std::vector<std::string> constants;
  for (const syntax::Parameter& p : kernel_.parameters)
    if (is_name(p.annotation, "const") || is_name(p.annotation, "fn")) {
      constants.push_back(p.name);
      TESSERA_CHECK(constant_parameter(p));
    }
  for (const auto& [name, value] : options_.constants)
    if (std::find(constants.begin(), constants.end(), name) == constants.end()) {
      const std::string near = nearest(name, constants);
      return error(
          fail(bad_constant, "kernel `{}` has no constant `{}`", kernel_.name, name)
              .label(label(kernel_.name_span))
              .expect("one of: {}", constants.empty() ? "none" : join(constants, ", "))
              .help("{}", near.empty() ? "leave it out" : fmt::format("did you mean `{}`?", near)));
    }
  TESSERA_CHECK(decorators());
  if (threads_asked_ > 0) measured_.threads = threads_asked_;
  builder_ = std::make_unique<core::Builder>(kernel_.name, measured_.threads, cluster_);
  for (const std::string& name : constants) {
    const Value& v = find(name)->value;
    if (const auto* n = v.as<int64_t>()) {
      builder_->kernel().constants[name] = *n;
      numbers_[name] = std::to_string(*n);
    }
    if (const auto* x = v.as<double>()) numbers_[name] = fmt::format("{}", *x);
  }
  std::vector<const syntax::Parameter*> own;
  for (const syntax::Parameter& p : kernel_.parameters)
    if (!is_name(p.annotation, "const") && !is_name(p.annotation, "fn") && !unused(p))
      own.push_back(&p);
  TESSERA_TRY(given, launch_parameters(own, "a kernel"));
  for (const syntax::Parameter* p : own)  // integers have got their names, which tensors use
    if (const auto found = given.find(p->name);
        found != given.end() && found->second.as<TensorRef>() != nullptr)
      TESSERA_CHECK(bind(p->name, found->second, p->span));
  return function_parameters();
}

Result<std::map<std::string, Value>> Elaborator::launch_parameters(
    const std::vector<const syntax::Parameter*>& all, std::string_view of) {
  std::vector<std::pair<const syntax::Parameter*, TensorType>> tensors;
  std::map<std::string, Value> out;
  for (const syntax::Parameter* p : all) {
    Value type;
    if (p->annotation) {
      TESSERA_TRY(v, evaluate(*p->annotation));
      type = v;
    }
    if (const auto* index = type.as<IndexType>()) {
      TESSERA_TRY(v, index_parameter(*p, *index));
      out[p->name] = v;
    } else if (const auto* tensor = type.as<TensorType>()) {
      tensors.emplace_back(p, *tensor);
    } else if (!p->annotation || type.as<None>() == nullptr) {  // None: the kernel lacks it
      return error(fail(wrong_kind, "parameter `{}` of {} has no type of one", p->name, of)
                       .label(label(p->span))
                       .expect("`Tensor[...]`, `index(...)`, `const` or `fn`")
                       .help("write `{}: const = 128` or `{}: Tensor[bf16, \"M\", \"K\"]`", p->name,
                             p->name));
    }
  }
  for (const auto& [p, type] : tensors) {
    TESSERA_TRY(v, tensor_parameter(*p, type));
    out[p->name] = v;
  }
  return out;
}

/// Functions that the kernel is given may have tensors and integers of the launch for themselves:
/// their parameters that have a type.
Status Elaborator::function_parameters() {
  for (const syntax::Parameter& p : kernel_.parameters) {
    if (!is_name(p.annotation, "fn")) continue;
    Bound& bound = frames_.back().names.at(p.name);
    const auto* const f = bound.value.as<UserFunction>();
    if (f == nullptr) continue;
    std::vector<const syntax::Parameter*> own;
    for (const syntax::Parameter& q : f->function->parameters)
      if (q.annotation) own.push_back(&q);
    if (own.empty()) continue;
    TESSERA_TRY(given, launch_parameters(own, "a function that a kernel is given"));
    auto kept = std::make_shared<const std::map<std::string, Value>>(std::move(given));
    bound.value = {UserFunction{f->function, std::move(kept)}};
  }
  return {};
}

}  // namespace tessera::language
