// Sums of powers that are added have had the same greatest score taken off, and a total and the
// sums that it divides have the same factors.
//
// Sums are known by the greatest score that their exponents lack (check/online.h).
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind rescale = {
    .name = "rescale",
    .number = 23,
    .law =
        "Sums of powers that are added have had the same greatest score taken off, and a total and "
        "the sums that it divides have the same factors.",
    .code = {"TS0883", "check.rescale"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
