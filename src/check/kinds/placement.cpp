// The value stored at C[i, j] is the sum of row i of A and row j of B.
//
// Accumulators are traced by the instruction's own layout through registers and shared memory to
// the output's coordinates; each element of a tile is stored once.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind placement = {
    .name = "placement",
    .number = 2,
    .law = "The value stored at C[i, j] is the sum of row i of A and row j of B.",
    .code = {"TS0874", "check.placement"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
