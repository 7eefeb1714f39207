// All warps of a cluster come to each turn of its barrier, and wait for one before they come to the
// next.
//
// A warp that comes twice counts for two turns.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind cluster_barrier = {
    .name = "cluster_barrier",
    .number = 32,
    .law = "A warp comes to the cluster's barrier and waits for it by turns.",
    .code = {"TS0872", "check.cluster_barrier"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
