// Losses.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.cross_entropy_loss", OpKind::loss},
    {"aten.nll_loss", OpKind::loss},
    {"aten.nll_loss_forward", OpKind::loss},
    {"aten.nll_loss_nd", OpKind::loss},
    {"aten.mse_loss", OpKind::loss},
    {"aten.l1_loss", OpKind::loss},
    {"aten.smooth_l1_loss", OpKind::loss},
    {"aten.huber_loss", OpKind::loss},
    {"aten.kl_div", OpKind::loss},
    {"aten.binary_cross_entropy", OpKind::loss},
    {"aten.binary_cross_entropy_with_logits", OpKind::loss},
    {"aten.triplet_margin_loss", OpKind::loss},
    {"aten.margin_ranking_loss", OpKind::loss},
    {"aten.hinge_embedding_loss", OpKind::loss},
    {"aten.cosine_embedding_loss", OpKind::loss},
};

}  // namespace

extern const OpFamily loss{"loss", records};

}  // namespace tessera::graph::ops
