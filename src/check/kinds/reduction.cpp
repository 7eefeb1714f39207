// The accumulators, with what they are added to, hold the sum over each k once, over all of them.
//
// The first product of a tile overwrites, all others add; the steps of a turn cover its part of k,
// and turns follow one another to the end. What lies beyond is zero on both sides.
// Or accumulators begin anew on the way, and are added to other registers before (promoted.h).
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind reduction = {
    .name = "reduction",
    .number = 3,
    .law =
        "The accumulators, with what they are added to, hold the sum over each k once, over all "
        "of them.",
    .code = {"TS0875", "check.reduction"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
