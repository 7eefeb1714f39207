// Activation functions, element by element.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.relu", OpKind::pointwise, "relu"},
    {"aten.relu6", OpKind::pointwise, "relu6"},
    {"aten.gelu", OpKind::pointwise, "gelu_erf"},
    {"aten.silu", OpKind::pointwise, "silu"},
    {"aten.sigmoid", OpKind::pointwise, "sigmoid"},
    {"aten.log_sigmoid", OpKind::pointwise, "log_sigmoid"},
    {"aten.tanh", OpKind::pointwise, "tanh"},
    {"aten.leaky_relu", OpKind::pointwise, "leaky_relu"},
    {"aten.elu", OpKind::pointwise, "elu"},
    {"aten.celu", OpKind::pointwise, "expm1"},
    {"aten.selu", OpKind::pointwise, "selu"},
    {"aten.prelu", OpKind::pointwise, "leaky_relu"},
    {"aten.softplus", OpKind::pointwise, "softplus"},
    {"aten.softsign", OpKind::pointwise, "softsign"},
    {"aten.softshrink", OpKind::pointwise, "softshrink"},
    {"aten.hardshrink", OpKind::pointwise, "hardshrink"},
    {"aten.threshold", OpKind::pointwise, "threshold"},
    {"aten.mish", OpKind::pointwise, "mish"},
    {"aten.hardswish", OpKind::pointwise, "hardswish"},
    {"aten.hardsigmoid", OpKind::pointwise, "hardsigmoid"},
    {"aten.hardtanh", OpKind::pointwise, "clamp"},
    {"aten.clamp", OpKind::pointwise, "clamp"},
    {"aten.clamp_min", OpKind::pointwise, "maximum"},
    {"aten.clamp_max", OpKind::pointwise, "minimum"},
    {"aten.clip", OpKind::pointwise, "clamp"},
    {"aten._prelu_kernel", OpKind::pointwise, "leaky_relu"},
    {"aten.glu", OpKind::pointwise},
};

}  // namespace

extern const OpFamily activation{"activation", records};

}  // namespace tessera::graph::ops
