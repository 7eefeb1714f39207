// The head of a kernel's text:
//
//   @kernel(threads=128, cluster=1, min_blocks=1, grid=blocks)
//   def copy(M: Index[8, 1048576, 8], A: Tensor[bf16, (M, 64), (64, 1)], BM: const = 128):
#include "base/text.h"

#include "core/reader.h"

namespace tessera::core {
namespace {

using syntax::Expr;

constexpr int64_t most = 1 << 16;  // threads, blocks of a cluster: far above what machines have

/// The parameter with what is said of it.
Span whole(const syntax::Parameter& p) {
  return p.fallback ? p.span.to(p.fallback->span) : p.span.to(p.annotation->span);
}

}  // namespace

Status Reader::head(const syntax::Function& f) {
  std::string_view name;
  const syntax::Call* c = f.decorators.size() == 1 ? call_of(f.decorators[0], &name) : nullptr;
  if (c == nullptr || name != "kernel")
    return wrong(f.name_span, fmt::format("`{}` is not declared a kernel", f.name),
                 "one decorator, `@kernel(threads=..., cluster=..., min_blocks=..., grid=...)`");
  static const Signature signature{
      "kernel", {}, {"threads", "cluster", "min_blocks", "grid", "means"}, {"means"}};
  TESSERA_TRY(given, Call::bind(*source_, signature, *c, f.decorators[0].span));
  std::map<std::string_view, int> numbers;
  for (const std::string_view key : {"threads", "cluster", "min_blocks"}) {
    TESSERA_TRY(n, scope_.number(given[key], fmt::format("`{}`", key)));
    if (n < 1 || n > most)
      return error(bad_text_at(*source_, given[key].span, fmt::format("`{}` is out of range", key),
                               fmt::format("1 to {}", most))
                       .but_found("{}", n));
    numbers[key] = static_cast<int>(n);
  }
  kernel_.emplace(f.name, numbers["threads"], numbers["cluster"]);
  kernel_->min_blocks = numbers["min_blocks"];
  if (const Expr* means = given.find("means")) {
    const auto* text = means->as<syntax::String>();
    if (text == nullptr)
      return error(bad_text_at(*source_, means->span, "`means` is no text",
                               "`means=\"C[i, j] = sum(A[i, k] * B[j, k], k)\"`"));
    kernel_->means = text->value;
  }
  kernel_->source = source_;
  kernel_->span = f.name_span;
  const Coordinates& at = kernel_->at;
  for (const Term t : {at.lane, at.warp, at.block, at.blocks, at.rank, at.multiprocessors})
    TESSERA_CHECK(scope_.define(t->symbol->name, t, f.name_span));
  for (const syntax::Parameter& p : f.parameters) TESSERA_CHECK(parameter(p));
  TESSERA_TRY(grid, scope_.term(pool(), given["grid"]));
  kernel_->grid = grid;
  return {};
}

Status Reader::parameter(const syntax::Parameter& p) {
  const std::string* word = p.annotation ? name_of(*p.annotation) : nullptr;
  if (word != nullptr && *word == "const") {
    if (!p.fallback)
      return wrong(p.span, fmt::format("the constant `{}` has no value", p.name),
                   "`NAME: const = 8`");
    TESSERA_TRY(n, scope_.number(*p.fallback, "a constant"));
    TESSERA_CHECK(scope_.define(p.name, Decision{n}, p.span));
    kernel_->constants[p.name] = n;
    return {};
  }
  const auto* s = p.annotation ? p.annotation->as<syntax::Subscript>() : nullptr;
  const std::string* of = s == nullptr ? nullptr : name_of(*s->of);
  if (of != nullptr && *of == "Index" && !p.fallback) return index(p, *s);
  if (of != nullptr && *of == "Tensor" && !p.fallback) return tensor(p, *s);
  return wrong(p.span, fmt::format("`{}` is not declared as the core declares parameters", p.name),
               "`Index[low, high]`, `Tensor[f32, (M, N), (N, 1)]` or `const = 8`");
}

/// `Index[low, high, modulus, residue]`: the last two may be left out.
Status Reader::index(const syntax::Parameter& p, const syntax::Subscript& s) {
  if (s.indices.size() < 2 || s.indices.size() > 4)
    return error(bad_text_at(*source_, p.annotation->span,
                             fmt::format("the bounds of `{}` are not told", p.name),
                             "`Index[low, high]`, perhaps with a modulus and a residue")
                     .but_found("{}", scope_.quoted(p.annotation->span)));
  term::Bounds bounds;
  for (int i = 0; i < 2; ++i) {
    if (const auto* c = s.indices[i].as<syntax::Constant>();
        c != nullptr && *c == syntax::Constant::none)
      continue;
    TESSERA_TRY(t, scope_.term(pool(), s.indices[i]));
    (i == 0 ? bounds.lower : bounds.upper) = t;
  }
  for (std::size_t i = 2; i < s.indices.size(); ++i) {
    TESSERA_TRY(n, scope_.number(s.indices[i], i == 2 ? "a modulus" : "a residue"));
    (i == 2 ? bounds.modulus : bounds.residue) = n;
  }
  TESSERA_CHECK(scope_.define(p.name, Term(), p.span));
  const Result<Term> t = pool().parameter(p.name, bounds);
  if (!t) return placed(t.error(), p.span);
  scope_.redefine(p.name, *t);
  kernel_->parameters.push_back(*t);
  return {};
}

Result<std::vector<Term>> Reader::tuple(const Expr& e, std::string_view what) {
  const auto* t = e.as<syntax::Tuple>();
  if (t == nullptr)
    return error(
        bad_text_at(*source_, e.span, fmt::format("{} are no tuple", what), "`(M, K)`, `(M,)`")
            .but_found("{}", scope_.quoted(e.span)));
  return scope_.terms(pool(), t->items);
}

/// `Tensor[bf16, extents, strides, out]`.
Status Reader::tensor(const syntax::Parameter& p, const syntax::Subscript& s) {
  Tensor t;
  t.name = p.name;
  t.span = whole(p);
  if (s.indices.size() < 3 || s.indices.size() > 4)
    return error(bad_text_at(*source_, p.annotation->span,
                             fmt::format("the tensor `{}` is not told whole", p.name),
                             "`Tensor[element, extents, strides]`, perhaps with an access")
                     .but_found("{}", scope_.quoted(p.annotation->span)));
  TESSERA_TRY(element, scope_.element(s.indices[0]));
  TESSERA_TRY(extents, tuple(s.indices[1], "extents"));
  TESSERA_TRY(strides, tuple(s.indices[2], "strides"));
  t.element = element;
  t.extents = std::move(extents);
  t.strides = std::move(strides);
  if (s.indices.size() == 4) {
    const std::string* word = name_of(s.indices[3]);
    if (word == nullptr || (*word != "out" && *word != "workspace"))
      return error(with_nearest(
          bad_text_at(*source_, s.indices[3].span, "this is no access", "`out` or `workspace`")
              .but_found("{}", scope_.quoted(s.indices[3].span)),
          word == nullptr ? "" : *word, {"out", "workspace"}));
    t.access = *word == "out" ? Access::output : Access::workspace;
  }
  TESSERA_CHECK(scope_.define(p.name, TensorId(kernel_->tensors.size()), p.span));
  kernel_->tensors.push_back(std::move(t));
  return {};
}

}  // namespace tessera::core
