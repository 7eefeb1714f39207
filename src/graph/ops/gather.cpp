// Indexed reads and writes.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.embedding", OpKind::gather},     {"aten.embedding_bag", OpKind::gather},
    {"aten.index", OpKind::gather},         {"aten.index_select", OpKind::gather},
    {"aten.gather", OpKind::gather},        {"aten.take_along_dim", OpKind::gather},
    {"aten.scatter", OpKind::gather},       {"aten.scatter_add", OpKind::gather},
    {"aten.index_put", OpKind::gather},     {"aten.index_add", OpKind::gather},
    {"aten.masked_select", OpKind::gather}, {"aten.one_hot", OpKind::gather},
    {"aten.nonzero", OpKind::gather},
};

}  // namespace

extern const OpFamily gather{"gather", records};

}  // namespace tessera::graph::ops
