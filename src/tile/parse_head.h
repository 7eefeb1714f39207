// The head of a kernel's text: its decorator and its parameters.
#pragma once

#include "diag/source.h"
#include "tile/program.h"

#include "syntax/ast.h"

namespace tessera::tile {

struct KernelHead {
  int threads = 0;
  int min_blocks = 0;  // 0: not told
  std::vector<Tensor> tensors;
  std::map<std::string, int64_t> constants;
};

/// Of `@kernel(threads=32, min_blocks=2)` and `def f(x: Tensor[f32, 6, 64], N: const = 8):`.
Result<KernelHead> read_head(const Source& source, const syntax::Function& f);

/// The name, where the expression is one.
const std::string* name_of(const syntax::Expr& e);
/// A call of a plain name, which `name` becomes; else nothing.
const syntax::Call* call_of(const syntax::Expr& e, std::string_view* name);

}  // namespace tessera::tile
