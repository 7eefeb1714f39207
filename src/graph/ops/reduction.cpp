// Reductions.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.sum", OpKind::reduction},
    {"aten.mean", OpKind::reduction},
    {"aten.prod", OpKind::reduction},
    {"aten.amax", OpKind::reduction},
    {"aten.amin", OpKind::reduction},
    {"aten.aminmax", OpKind::reduction},
    {"aten.max", OpKind::reduction},
    {"aten.min", OpKind::reduction},
    {"aten.argmax", OpKind::reduction},
    {"aten.argmin", OpKind::reduction},
    {"aten.var", OpKind::reduction},
    {"aten.std", OpKind::reduction},
    {"aten.var_mean", OpKind::reduction},
    {"aten.norm", OpKind::reduction},
    {"aten.linalg_vector_norm", OpKind::reduction},
    {"aten.frobenius_norm", OpKind::reduction},
    {"aten.logsumexp", OpKind::reduction},
    {"aten.all", OpKind::reduction},
    {"aten.any", OpKind::reduction},
    {"aten.topk", OpKind::reduction},
    {"aten.sort", OpKind::reduction},
    {"aten.dist", OpKind::reduction},
    {"aten.pairwise_distance", OpKind::reduction},
    {"aten.cosine_similarity", OpKind::reduction},
};

}  // namespace

extern const OpFamily reduction{"reduction", records};

}  // namespace tessera::graph::ops
