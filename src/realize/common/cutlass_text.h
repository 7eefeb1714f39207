// The text of a CUTLASS library: one or more products, each in its own namespace, and the C
// interface around them.
#pragma once

#include <initializer_list>
#include <string>

#include "realize/common/gemm_problem.h"
#include "realize/common/sm90_config.h"

namespace tessera::realize {

/// `$KEY$` in the template becomes its value.
std::string fill(std::string text, const std::vector<std::pair<std::string, std::string>>& values);

/// C++ names of a type in CUTLASS; "cutlass::bfloat16_t".
std::string cutlass_type(DType t);

/// The epilogue as one functor over float fragments, `template <class T> struct Fused`, arguments
/// x0 (the accumulator), x1, ... Where the element type rounds more than they do, functions are
/// those of tessera_cutlass/functors.hpp. A further result r is `Fused{r}`.
std::string fused_functor(const pointwise::Dag& dag, int leaves, DType element,
                          std::size_t result = 0);

/// The names of the integers that one product reads, in order, with a prefix.
std::vector<std::string> product_ints(const GemmProblem& p, std::string_view prefix);
/// Their values.
std::vector<int64_t> product_values(const GemmProblem& p, const Knobs& knobs);

/// One product for sm_90a: a namespace `name` with `Kernel` and `arguments(launch, workspace)`,
/// reading its integers from `first_int`.
std::string sm90_product(const GemmProblem& p, const Sm90Config& c, std::string_view name,
                         int first_int);

struct LibraryText {
  std::string name;
  std::string arch;
  std::string includes;               // "#include ..." lines
  std::string body;                   // products and further kernels
  std::vector<std::string> products;  // namespaces, in launch order
  std::string tail;  // C++ statements after the products' launches, ending in `return ...;`
  std::vector<std::string> ints;  // "scratch" first
  bool apart = false;             // every kernel has a name: the sides may be compiled apart
};
/// The whole file. Integer 0 is the scratch bytes at the start of the workspace.
std::string library(const LibraryText& text);

/// The flags that CUTLASS needs. Asserts off: a call in a wgmma loop makes ptxas serialize it.
/// `columns`: of the tiles that wgmma multiplies. CuTe takes the widest instruction it knows that
/// divides them; where its usual few leave a narrow one (160 columns: 32), all are made known, at
/// 25 s more of compilation.
std::vector<std::string> cutlass_flags(std::initializer_list<int64_t> columns = {});

}  // namespace tessera::realize
