// A barrier is initialized once, fenced by the thread that did it, and known to be so by whoever
// uses it.
//
// `fence.mbarrier_init` makes it known to the async proxy and to the cluster; a barrier of the
// block, or of the cluster, to other threads.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind barrier_init = {
    .name = "barrier_init",
    .number = 31,
    .law =
        "A barrier is initialized once, fenced by the thread that did it, and known to be so by "
        "whoever uses it.",
    .code = {"TS0868", "check.barrier_init"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
