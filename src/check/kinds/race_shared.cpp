// Of two accesses of a byte of shared memory, one of them a write, one is known to be finished
// before the other begins.
//
// Asynchronous accesses are finished when their barrier, or their group, has been awaited. Ring
// freshness is part of it: a slot that is read too late has been overwritten, one that is read too
// early is being written.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind race_shared = {
    .name = "race_shared",
    .number = 8,
    .law =
        "Of two accesses of a byte of shared memory, one of them a write, one is known to be "
        "finished before the other begins. The lanes of one store write bytes of their own.",
    .code = {"TS0863", "check.race"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
