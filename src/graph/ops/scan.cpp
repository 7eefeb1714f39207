// Scans along a dim.
#include "graph/ops.h"

namespace tessera::graph::ops {
namespace {

constexpr OpRecord records[] = {
    {"aten.cumsum", OpKind::scan},       {"aten.cumprod", OpKind::scan},
    {"aten.cummax", OpKind::scan},       {"aten.cummin", OpKind::scan},
    {"aten.logcumsumexp", OpKind::scan},
};

}  // namespace

extern const OpFamily scan{"scan", records};

}  // namespace tessera::graph::ops
