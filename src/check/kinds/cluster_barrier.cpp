// A warp comes to the cluster's barrier and waits for it by turns.
//
// One that comes twice would count for a warp that has not come. That all warps come to each turn
// is part of `deadlock`.
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
