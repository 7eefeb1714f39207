// Every index lies within its storage: shared memory, barriers, registers.
//
// Boxes of tensor maps may leave their tensors: loads fill, stores leave out what lies outside.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind bounds = {
    .name = "bounds",
    .number = 16,
    .law = "Every index lies within its storage: shared memory, barriers, registers.",
    .code = {"TS0871", "check.bounds"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
