#include "rules/common/advice.h"

#include <map>

#include "graph/ops.h"

namespace tessera::rules {

using graph::OpKind;

std::string advice_for(const graph::Node& node) {
  const auto name = graph::base_name(node.op);
  static const std::map<std::string_view, std::string_view> by_name = {
      {"aten._native_batch_norm_legit_functional",
       "it computes statistics over the batch (training mode): .eval() makes it a scale and a "
       "shift that fuse"},
      {"aten.repeat_interleave",
       "for grouped heads, pass the heads as they are and enable_gqa=True"},
      {"aten.topk", "routing by values stays in PyTorch"},
      {"aten.argmax", "places are integers; only values are computed in kernels"},
      {"aten.argmin", "places are integers; only values are computed in kernels"},
      {"aten.max", "its places are needed too; amax alone would fuse"},
      {"aten.min", "its places are needed too; amin alone would fuse"},
  };
  if (const auto it = by_name.find(name); it != by_name.end()) return std::string(it->second);
  switch (graph::kind_of(node)) {
    case OpKind::convolution:
      return "convolutions run in PyTorch's library for them (cuDNN on CUDA); pointwise work after "
             "them "
             "is a pattern of its own";
    case OpKind::pooling:
    case OpKind::scan:
    case OpKind::gather:
      return "it stays in PyTorch; pointwise work around it is a pattern of its own";
    case OpKind::recurrent:
      return "recurrent layers run in PyTorch's own fused kernels";
    case OpKind::loss:
      return "written by its formula, e.g. (a - b).square().mean(), it fuses";
    case OpKind::random:
      return "it draws random numbers: .eval(), or p = 0, makes dropout vanish";
    case OpKind::create:
      return "made in every call; a buffer would be made once";
    case OpKind::opaque:
      return "an op without a record: it stays in PyTorch as it is";
    default:
      return {};
  }
}

}  // namespace tessera::rules
