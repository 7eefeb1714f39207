// Types of tensors: `Tensor[bf16, "M", "K", strides("S", 1), out]`.
#include <algorithm>

#include "language/elaborator.h"

namespace tessera::language {

Result<const syntax::Expr*> Elaborator::chosen(const syntax::Expr& e) {
  const auto* c = e.as<syntax::Conditional>();
  if (c == nullptr) return &e;
  TESSERA_TRY(test, condition(*c->condition));
  if (const bool* known = std::get_if<bool>(&test)) return chosen(*known ? *c->yes : *c->no);
  return error(fail(not_constant, "the type of a tensor depends on constants alone")
                   .label(label(c->condition->span, "the launch chooses"))
                   .expect("a condition that is known before the launch")
                   .but_found("{}", source_->text(c->condition->span))
                   .help("compare a `const` of the kernel: `BATCHES == 1`"));
}

Status Elaborator::tensor_part(const syntax::Expr& e, TensorType& type) {
  const auto number = [&](const syntax::Expr& of) -> Result<std::optional<TensorType::Number>> {
    TESSERA_TRY(v, evaluate(of));
    if (const auto* name = v.as<std::string>()) return TensorType::Number(*name);
    if (const auto* n = v.as<int64_t>()) return TensorType::Number(*n);
    if (v.as<None>() != nullptr) return std::nullopt;
    return error(fail(wrong_kind, "an extent of a tensor is a name or a number")
                     .label(label(of.span))
                     .expect("a name, a number, or None for a dimension that the tensor lacks")
                     .but_found("{}", kind_of(v))
                     .help("write `Tensor[bf16, \"M\", 128]`"));
  };
  const auto* name = e.as<syntax::Name>();
  const auto* call = e.as<syntax::Call>();
  const auto* function = call == nullptr ? nullptr : call->function->as<syntax::Name>();
  if (name != nullptr && (name->id == "out" || name->id == "workspace")) {
    type.access = name->id == "out" ? core::Access::output : core::Access::workspace;
  } else if (function != nullptr && function->id == "strides") {
    for (const syntax::Argument& a : call->arguments) {
      TESSERA_TRY(n, number(a.value));
      if (!n)
        return error(fail(wrong_kind, "a stride is a name or a number")
                         .label(label(a.value.span))
                         .expect("elements from one index to the next")
                         .but_found("None")
                         .help("the stride of a dimension that the tensor lacks is not looked at"));
      type.strides.push_back(*n);
    }
  } else {
    TESSERA_TRY(n, number(e));
    type.has.push_back(n.has_value());
    if (n) type.extents.push_back(*n);
  }
  return {};
}

Result<Value> Elaborator::tensor_type(const syntax::Subscript& s, Span span) {
  TensorType out;
  TESSERA_TRY(element, evaluate(s.indices.front()));
  if (element.as<DType>() == nullptr)
    return error(fail(wrong_kind, "a tensor's first argument is the type of its elements")
                     .label(label(s.indices.front().span))
                     .but_found("{}", kind_of(element))
                     .help("write `Tensor[bf16, \"M\", \"K\"]`"));
  out.element = *element.as<DType>();
  for (std::size_t i = 1; i < s.indices.size(); ++i) {
    TESSERA_TRY(e, chosen(s.indices[i]));
    TESSERA_CHECK(tensor_part(*e, out));
  }
  if (out.extents.empty() || (!out.strides.empty() && out.strides.size() != out.has.size()))
    return error(fail(wrong_shape, "the type of a tensor names its extents, and a stride for each")
                     .label(label(span))
                     .expect("as many strides as extents")
                     .but_found("{} extents, {} strides", out.has.size(), out.strides.size())
                     .help("write `Tensor[bf16, \"M\", \"K\"]`; without strides it is row-major"));
  for (std::size_t i = out.strides.size(); i-- > 0;)
    if (!out.has[i]) out.strides.erase(out.strides.begin() + static_cast<std::ptrdiff_t>(i));
  return Value{std::move(out)};
}

}  // namespace tessera::language
