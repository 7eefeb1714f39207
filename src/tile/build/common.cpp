#include "tile/build/common.h"

#include <algorithm>

#include "layout/strides.h"

namespace tessera::tile::build {

Limits limits_of(const arch::Arch& a) {
  Limits l;
  l.target = a.device == "cuda" ? Target::cuda : Target::host;
  l.multiprocessors = std::max(a.multiprocessors, 1);
  l.shared_bytes = a.shared_memory_per_block;
  l.registers = a.registers_per_multiprocessor;
  l.l2_bytes = a.l2_bytes;
  if (a.products != nullptr) l.products = a.products();
  return l;
}

Tensor row_major_tensor(std::string name, DType element, const std::vector<int64_t>& shape,
                        tile::Access access) {
  Tensor t{std::move(name), element, shape, layout::contiguous_strides(shape), access};
  return t;
}

Layout mode_of(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
               std::size_t first, std::size_t last) {
  std::vector<int64_t> extents;
  std::vector<int64_t> steps;
  for (std::size_t i = last; i-- > first;) {
    extents.push_back(shape[i]);
    steps.push_back(shape[i] == 1 ? 0 : strides[i]);
  }
  if (extents.empty()) return {1, 0};
  return coalesce(Layout(IntTuple::flat(extents), IntTuple::flat(steps)));
}

pointwise::Dag identity_dag() {
  pointwise::Dag d;
  d.results = {d.add_operand(0)};
  return d;
}

std::vector<bool> operands_read(const pointwise::Dag& dag, std::size_t count) {
  std::vector<bool> read(count);
  for (const auto& n : dag.nodes)
    if (n.kind == pointwise::Dag::Node::Kind::operand) read.at(n.operand) = true;
  return read;
}

MapOf map_of(const pointwise::Dag& dag) {
  return {std::make_shared<const pointwise::Dag>(dag.ordered())};
}

int vector_elements(const std::vector<Tensor>& tensors) {
  int n = 4;
  for (const Tensor& t : tensors) n = std::max(n, 16 / size_of(t.element));
  return std::min(n, 8);
}

}  // namespace tessera::tile::build
