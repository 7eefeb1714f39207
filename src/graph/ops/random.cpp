// Random numbers; dropout that draws none counts as a view.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.dropout", OpKind::random},
    {"aten.native_dropout", OpKind::random},
    {"aten.feature_dropout", OpKind::random},
    {"aten.alpha_dropout", OpKind::random},
    {"aten.rand", OpKind::random},
    {"aten.randn", OpKind::random},
    {"aten.rand_like", OpKind::random},
    {"aten.randn_like", OpKind::random},
    {"aten.randint", OpKind::random},
    {"aten.bernoulli", OpKind::random},
    {"aten.multinomial", OpKind::random},
    {"aten.randperm", OpKind::random},
};

}  // namespace

extern const OpFamily random{"random", records};

}  // namespace tessera::graph::ops
