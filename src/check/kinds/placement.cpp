// What is stored at C[i, j] is the meaning's function of the sum of row i of A and row j of B.
//
// Accumulators, and what is loaded beside them, are traced as formulas through registers and shared
// memory to the output's coordinates; each element of a tile is stored once.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind placement = {
    .name = "placement",
    .number = 2,
    .law =
        "What is stored at C[i, j] is the meaning's function of the sum of row i of A and row j of "
        "B, and loads and stores of registers stay within their tensors.",
    .code = {"TS0874", "check.placement"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
