#include "tile/parse_head.h"

#include "layout/strides.h"
#include "tile/parse.h"

namespace tessera::tile {
namespace {

using syntax::Expr;

Diagnostic wrong(const Source& source, Span span, std::string_view what,
                 std::string_view expected) {
  return fail(bad_kernel_text, "{}", what).label(source.label(span)).expect("{}", expected);
}

/// Threads, and blocks that must fit together, of `@kernel(threads=n, min_blocks=m)`.
Result<std::pair<int, int>> decorator(const Source& source, const syntax::Function& f) {
  std::string_view name;
  const syntax::Call* c = f.decorators.size() == 1 ? call_of(f.decorators[0], &name) : nullptr;
  if (c == nullptr || name != "kernel")
    return error(wrong(source, f.name_span, fmt::format("`{}` is not declared a kernel", f.name),
                       "one decorator, `@kernel(threads=...)`"));
  std::pair<int, int> out{0, 0};
  for (const syntax::Argument& a : c->arguments) {
    const auto* n = a.value.as<syntax::Integer>();
    int* const to = a.keyword == "threads"      ? &out.first
                    : a.keyword == "min_blocks" ? &out.second
                                                : nullptr;
    if (n == nullptr || to == nullptr || n->value < 1 || n->value > 1024)
      return error(wrong(source, a.span, "a kernel is not told this",
                         "`threads=` or `min_blocks=`, 1 to 1024"));
    *to = static_cast<int>(n->value);
  }
  if (out.first == 0)
    return error(wrong(source, f.decorators[0].span, "the kernel has no threads", "`threads=`"));
  return out;
}

Result<Tensor> tensor(const Source& source, const std::string& name, const syntax::Subscript& s) {
  Tensor t;
  t.name = name;
  const std::string* element = name_of(s.indices[0]);
  const Result<DType> type = parse_dtype(element == nullptr ? "" : *element);
  if (!type)
    return error(
        wrong(source, s.indices[0].span, "this is no element type", "f32, bf16, f16, ..."));
  t.element = *type;
  bool strided = false;
  for (std::size_t i = 1; i < s.indices.size(); ++i) {
    const Expr& e = s.indices[i];
    std::string_view f;
    const std::string* word = name_of(e);
    if (const auto* n = e.as<syntax::Integer>(); n != nullptr) {
      t.shape.push_back(n->value);
    } else if (const syntax::Call* c = call_of(e, &f); c != nullptr && f == "strides") {
      strided = true;
      for (const syntax::Argument& a : c->arguments) {
        const auto* by = a.value.as<syntax::Integer>();
        if (by == nullptr)
          return error(wrong(source, a.span, "this is no stride", "a whole number"));
        t.strides.push_back(by->value);
      }
    } else if (word != nullptr && (*word == "out" || *word == "workspace")) {
      t.access = *word == "out" ? Access::output : Access::workspace;
    } else {
      return error(wrong(source, e.span, "this says nothing of a tensor",
                         "an extent, `strides(...)`, `out` or `workspace`"));
    }
  }
  if (!strided) t.strides = layout::contiguous_strides(t.shape);
  if (t.strides.size() != t.shape.size())
    return error(wrong(
        source, s.of->span,
        fmt::format("`{}` has {} extents and {} strides", name, t.shape.size(), t.strides.size()),
        "one stride an extent"));
  return t;
}

Status parameter(const Source& source, const syntax::Parameter& p, std::vector<Tensor>& tensors,
                 std::map<std::string, int64_t>& constants) {
  const std::string* word = p.annotation ? name_of(*p.annotation) : nullptr;
  if (word != nullptr && *word == "const") {
    const auto* n = p.fallback ? p.fallback->as<syntax::Integer>() : nullptr;
    if (n == nullptr)
      return error(wrong(source, p.span, "a constant has no value", "`NAME: const = 8`"));
    constants[p.name] = n->value;
    return {};
  }
  const auto* s = p.annotation ? p.annotation->as<syntax::Subscript>() : nullptr;
  const std::string* of = s == nullptr ? nullptr : name_of(*s->of);
  if (of == nullptr || *of != "Tensor")
    return error(wrong(source, p.span,
                       fmt::format("`{}` is neither a tensor nor a constant", p.name),
                       "`Tensor[f32, 6, 64]` or `const = 8`"));
  TESSERA_TRY(t, tensor(source, p.name, *s));
  tensors.push_back(std::move(t));
  return {};
}

}  // namespace

const std::string* name_of(const Expr& e) {
  const auto* n = e.as<syntax::Name>();
  return n == nullptr ? nullptr : &n->id;
}

/// A call of a plain name, else nothing.
const syntax::Call* call_of(const Expr& e, std::string_view* name) {
  const auto* c = e.as<syntax::Call>();
  const std::string* f = c == nullptr ? nullptr : name_of(*c->function);
  if (f == nullptr) return nullptr;
  *name = *f;
  return c;
}

Result<KernelHead> read_head(const Source& source, const syntax::Function& f) {
  KernelHead out;
  for (const syntax::Parameter& p : f.parameters)
    TESSERA_CHECK(parameter(source, p, out.tensors, out.constants));
  TESSERA_TRY(head, decorator(source, f));
  out.threads = head.first;
  out.min_blocks = head.second;
  return out;
}

}  // namespace tessera::tile
