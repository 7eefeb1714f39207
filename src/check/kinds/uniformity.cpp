// What a warp or a warpgroup executes as one is reached by all of its threads.
//
// Warps of a warpgroup execute the same instructions of warpgroups in the same order.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind uniformity = {
    .name = "uniformity",
    .number = 15,
    .law = "What a warp or a warpgroup executes as one is reached by all of its threads.",
    .code = {"TS0867", "check.uniformity"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
