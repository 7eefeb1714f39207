#include "rules/common/reduction.h"

#include <algorithm>

namespace tessera::rules {

using graph::Node;
using graph::Operand;

namespace {

std::string kind_of_reduction(const Node& node) {
  const auto name = base_name(node.op).substr(5);
  for (std::string_view known : {"sum", "mean", "amax", "amin", "prod"})
    if (name == known) return std::string(known);
  const bool all =
      node.find("dim") == nullptr && node.outputs.size() == 1 && node.find("other") == nullptr;
  if (name == "max" && all) return "amax";
  if (name == "min" && all) return "amin";
  return "";
}

/// The reduced dims; none given means all. A tensor without dims may be reduced along 0 or -1.
std::vector<bool> reduced_dims(const Node& node, std::size_t rank) {
  std::vector<int64_t> dims = node.integers("dim");
  if (dims.empty())
    if (auto one = node.integer("dim")) dims = {*one};
  std::vector<bool> reduced(rank, dims.empty());
  for (int64_t d : dims)
    if (rank > 0) reduced[graph::wrap_dim(d, rank)] = true;
  return reduced;
}

}  // namespace

Result<Reduction> find_reduction(const Flow& flow, NodeId n) {
  const Node& node = flow.g.node(n);
  Reduction r;
  r.kind = kind_of_reduction(node);
  if (r.kind.empty())
    return refuse("`{}` is not among sum, mean, amax, amin, prod", base_name(node.op));
  r.result = node.outputs.at(0);
  if (!is_floating(flow.g.value(r.result).type.dtype))
    return refuse("integer reductions are not computed exactly in float");
  const Operand x = graph::resolve(flow.g, node.tensor("self"));
  if (x.numel() == 0) return refuse("an empty tensor");
  const auto reduced = reduced_dims(node, x.shape.size());
  r.operand = Operand{x.base, {}, {}, x.offset, {}};
  for (const bool last : {false, true}) {
    for (std::size_t d = 0; d < x.shape.size(); ++d) {
      if (reduced[d] != last) continue;
      r.operand.shape.push_back(x.shape[d]);
      r.operand.strides.push_back(x.strides[d]);
      if (!last) r.kept_elements *= x.shape[d];
    }
  }
  return r;
}

}  // namespace tessera::rules
