// Data moves, values stay (or are rounded to another type).
#include "graph/ops.h"
#include "graph/pointwise_import.h"

namespace tessera::graph::ops {
namespace {

/// Fused arithmetic stays in float; what rounds by its own meaning rounds (conversion.h).
int convert(ElementCall& c) {
  const int x = c.arg("self");
  if (c.output_type() == DType::boolean) return c.call("ne", {x, c.constant(0)});
  const std::string_view rounding = c.rounding();
  return rounding.empty() ? x : c.call(rounding, {x});
}

constexpr OpRecord records[] = {
    {"aten.contiguous", OpKind::copy, same_value},
    {"aten.clone", OpKind::copy, same_value},
    {"aten._to_copy", OpKind::copy, convert},
    {"aten.to", OpKind::copy, convert},
    {"aten.type_as", OpKind::copy},
    {"aten.copy", OpKind::copy},
    {"aten.cat", OpKind::copy},
    {"aten.concat", OpKind::copy},
    {"aten.stack", OpKind::copy},
    {"aten.hstack", OpKind::copy},
    {"aten.repeat", OpKind::copy},
    {"aten.repeat_interleave", OpKind::copy},
    {"aten.tile", OpKind::copy},
    {"aten.pad", OpKind::copy},
    {"aten.constant_pad_nd", OpKind::copy},
    {"aten.reflection_pad1d", OpKind::copy},
    {"aten.reflection_pad2d", OpKind::copy},
    {"aten.replication_pad1d", OpKind::copy},
    {"aten.replication_pad2d", OpKind::copy},
    {"aten.flip", OpKind::copy},
    {"aten.roll", OpKind::copy},
    {"aten.tril", OpKind::copy},
    {"aten.triu", OpKind::copy},
    {"aten.slice_scatter", OpKind::copy},
    {"aten.select_scatter", OpKind::copy},
    {"aten.pixel_shuffle", OpKind::copy},
    {"aten.pixel_unshuffle", OpKind::copy},
    {"aten.channel_shuffle", OpKind::copy},
    {"aten.im2col", OpKind::copy},
    {"aten.meshgrid", OpKind::copy},
    {"aten.upsample_nearest2d", OpKind::copy},
    {"aten.upsample_bilinear2d", OpKind::pooling},
    {"aten.diag", OpKind::copy},
    {"aten.diag_embed", OpKind::copy},
    {"aten._assert_tensor_metadata", OpKind::view},
};

}  // namespace

extern const OpFamily copy{"copy", records};

}  // namespace tessera::graph::ops
