// Convolutions.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

/// Every result element is a sum over the kernel and the input channels of its group. A transposed
/// convolution does the same work counted from its input: each input element meets the kernel and
/// the output channels of its group.
double sums(const Graph& g, const Node& n) {
  const auto& weight = g.value(n.tensor("weight")).type;
  const bool transposed =
      n.op.find("transpose") != std::string::npos || n.flag("transposed").value_or(false);
  const ValueId counted = transposed ? n.tensor("input") : n.outputs.front();
  const double each =
      static_cast<double>(weight.numel()) / static_cast<double>(weight.shape.front());
  return 2 * static_cast<double>(g.value(counted).type.numel()) * each;
}

constexpr OpRecord records[] = {
    {"aten.convolution", OpKind::convolution, {}, sums},
    {"aten.conv1d", OpKind::convolution, {}, sums},
    {"aten.conv2d", OpKind::convolution, {}, sums},
    {"aten.conv3d", OpKind::convolution, {}, sums},
    {"aten.conv_transpose1d", OpKind::convolution, {}, sums},
    {"aten.conv_transpose2d", OpKind::convolution, {}, sums},
    {"aten.conv_transpose3d", OpKind::convolution, {}, sums},
};

}  // namespace

extern const OpFamily convolution{"convolution", records};

}  // namespace tessera::graph::ops
