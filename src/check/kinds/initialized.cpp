// Shared memory and registers are written before they are read.
//
// A wgmma that accumulates reads its accumulators.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind initialized = {
    .name = "initialized",
    .number = 7,
    .law = "Shared memory and registers are written before they are read.",
    .code = {"TS0864", "check.uninitialized"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
