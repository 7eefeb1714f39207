#include "check/means.h"

#include <algorithm>

#include "syntax/parse.h"

namespace tessera::check {
namespace {

using syntax::Expr;

Diagnostic wrong(const core::Kernel& k, std::string_view what) {
  return fail(bad_meaning, "the meaning of `{}` cannot be read: {}", k.name, what)
      .expect("C[i, j] = sum(A[i, k] * B[j, k], k)")
      .but_found("{}", k.means)
      .help("name tensors of the kernel, with one name a dimension");
}

/// `A[i, k]`.
struct Factor {
  core::TensorId tensor;
  std::vector<std::string> names;
  /// Which dimension has the name; -1: none.
  [[nodiscard]] int place(std::string_view name) const {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? -1 : static_cast<int>(at - names.begin());
  }
};

Result<Factor> factor(const core::Kernel& k, const Expr& e) {
  const auto* s = e.as<syntax::Subscript>();
  const auto* name = s == nullptr ? nullptr : s->of->as<syntax::Name>();
  if (name == nullptr) return error(wrong(k, "a factor is no element of a tensor"));
  Factor out;
  for (std::size_t i = 0; i < k.tensors.size(); ++i)
    if (k.tensors[i].name == name->id) out.tensor = core::TensorId(i);
  if (!out.tensor.valid()) return error(wrong(k, fmt::format("there is no tensor `{}`", name->id)));
  for (const Expr& index : s->indices) {
    const auto* n = index.as<syntax::Name>();
    if (n == nullptr || out.place(n->id) >= 0)
      return error(wrong(k, fmt::format("the indices of `{}` are not names, each once", name->id)));
    out.names.push_back(n->id);
  }
  if (out.names.size() != 2 || k[out.tensor].extents.size() != 2)
    return error(wrong(k, fmt::format("`{}` has not two dimensions", name->id)));
  return out;
}

/// `sum(A[i, k] * B[j, k], k)`: the factors and the name that is summed over.
Result<std::tuple<Factor, Factor, std::string>> product(const core::Kernel& k, const Expr& e) {
  const auto* sum = e.as<syntax::Call>();
  const auto* function = sum == nullptr ? nullptr : sum->function->as<syntax::Name>();
  if (function == nullptr || function->id != "sum" || sum->arguments.size() != 2)
    return error(wrong(k, "the right side is no sum"));
  const auto* times = sum->arguments[0].value.as<syntax::Binary>();
  const auto* over = sum->arguments[1].value.as<syntax::Name>();
  if (times == nullptr || times->op != "*" || over == nullptr)
    return error(wrong(k, "the sum is none of a product over one name"));
  TESSERA_TRY(a, factor(k, *times->left));
  TESSERA_TRY(b, factor(k, *times->right));
  return std::tuple{a, b, over->id};
}

}  // namespace

Result<std::optional<Means>> means_of(const core::Kernel& kernel) {
  if (kernel.means.empty()) return std::optional<Means>();
  const Source source("means", kernel.means + "\n");
  const syntax::Parsed parsed = syntax::parse(source);
  if (!parsed.errors.empty() || parsed.module.body.size() != 1)
    return error(wrong(kernel, "it is not one assignment"));
  const auto* assign = parsed.module.body.front().as<syntax::Assign>();
  if (assign == nullptr || assign->targets.size() != 1 || !assign->value || !assign->op.empty())
    return error(wrong(kernel, "it is not one assignment"));
  TESSERA_TRY(c, factor(kernel, assign->targets.front()));
  TESSERA_TRY(right, product(kernel, *assign->value));
  const auto& [a, b, k] = right;
  const std::string& i = a.names[a.place(k) == 0 ? 1 : 0];
  const std::string& j = b.names[b.place(k) == 0 ? 1 : 0];
  Means m{a.tensor, b.tensor, c.tensor};
  m.a_i = a.place(i), m.a_k = a.place(k);
  m.b_j = b.place(j), m.b_k = b.place(k);
  m.c_i = c.place(i), m.c_j = c.place(j);
  if (i == j || std::min({m.a_i, m.a_k, m.b_j, m.b_k, m.c_i, m.c_j}) < 0)
    return error(wrong(kernel, "its names are not those of a product of matrices"));
  return std::optional(m);
}

}  // namespace tessera::check
