// What the builders share: strided accesses to tensors, and what a schedule may count on.
#pragma once

#include "arch/arch.h"
#include "tile/emit.h"
#include "tile/payload.h"

#include "pointwise/pointwise.h"

namespace tessera::tile::build {

/// A strided view of a tensor of the launch: one stride (in elements) for each dim of the problem's
/// iteration space, 0 where it is broadcast. Several views may name one tensor (slices, shifted
/// halves), inputs and outputs alike.
struct StridedView {
  int tensor = 0;  // index into the problem's tensors
  std::vector<int64_t> strides;
  int64_t offset = 0;  // elements
};

/// What a schedule may use; asked from the architecture, never from its name.
struct Limits {
  Target target = Target::host;
  int multiprocessors = 1;
  int max_threads = 1024;
  int64_t shared_bytes = 0;  // of a block
  int64_t registers = 0;     // of a multiprocessor, 32 bits each
  int64_t l2_bytes = 0;
  std::span<const arch::Mma> products;
};
Limits limits_of(const arch::Arch& a);

/// A tensor of the launch with row-major strides.
Tensor row_major_tensor(std::string name, DType element, const std::vector<int64_t>& shape,
                        tile::Access access);

/// Dims [first, last) of a view as one mode: the last dim varies fastest. A mode of no dims is 1:0.
Layout mode_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
               std::size_t first, std::size_t last);

/// The DAG that returns operand 0: "nothing happens".
pointwise::Dag identity_dag();
/// Which of `count` operands a DAG reads, as it numbers them.
std::vector<bool> operands_read(const pointwise::Dag& dag, std::size_t count);
/// A map payload from a DAG, its nodes in the order that text gives them.
MapOf map_of(const pointwise::Dag& dag);

/// A map whose results are the nodes that f(dag, nodes of the operands) makes and returns.
template <class F>
std::vector<ValueId> add_map(KernelBuilder& b, std::vector<ValueId> operands, const F& f,
                             std::string_view hint) {
  pointwise::Dag d;
  std::vector<int> x;
  for (std::size_t i = 0; i < operands.size(); ++i) x.push_back(d.add_operand(static_cast<int>(i)));
  d.results = f(d, x);
  return b.add("map", std::move(operands), map_of(d), hint);
}

/// How many sensible elements one 16-byte access of the widest or narrowest tensor has.
int vector_elements(const std::vector<Tensor>& tensors);

}  // namespace tessera::tile::build
