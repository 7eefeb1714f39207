// Views: no data moves.
#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.view", OpKind::view},
    {"aten.view_as", OpKind::view},
    {"aten._unsafe_view", OpKind::view},
    {"aten.reshape", OpKind::view},
    {"aten.flatten", OpKind::view},
    {"aten.unflatten", OpKind::view},
    {"aten.transpose", OpKind::view},
    {"aten.swapaxes", OpKind::view},
    {"aten.permute", OpKind::view},
    {"aten.movedim", OpKind::view},
    {"aten.t", OpKind::view},
    {"aten.numpy_T", OpKind::view},
    {"aten.mT", OpKind::view},
    {"aten.expand", OpKind::view},
    {"aten.expand_as", OpKind::view},
    {"aten.broadcast_to", OpKind::view},
    {"aten.broadcast_tensors", OpKind::view},
    {"aten.unsqueeze", OpKind::view},
    {"aten.squeeze", OpKind::view},
    {"aten.select", OpKind::view},
    {"aten.slice", OpKind::view},
    {"aten.narrow", OpKind::view},
    {"aten.split", OpKind::view},
    {"aten.split_with_sizes", OpKind::view},
    {"aten.chunk", OpKind::view},
    {"aten.tensor_split", OpKind::view},
    {"aten.unbind", OpKind::view},
    {"aten.diagonal", OpKind::view},
    {"aten.unfold", OpKind::view},
    {"aten.as_strided", OpKind::view},
    {"aten.alias", OpKind::view, same_value},
    {"aten.detach", OpKind::view, same_value},
    {"aten.detach_", OpKind::view},
    {"aten.lift_fresh_copy", OpKind::copy, same_value},
    {"aten.view_as_complex", OpKind::view},
    {"aten.view_as_real", OpKind::view},
    {"aten.real", OpKind::view},
    {"aten.imag", OpKind::view},
};

}  // namespace

extern const OpFamily view{"view", records};

}  // namespace tessera::graph::ops
