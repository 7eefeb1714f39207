// The loop over keys turns once at least, and no -inf is taken from -inf where a row has seen no
// key yet.
//
// A row whose keys are all masked in the first turns is right from the turn on in which it sees
// one.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind degenerate = {
    .name = "degenerate",
    .number = 28,
    .law =
        "The loop over keys turns once at least, and no -inf is taken from -inf where a row has "
        "seen no key yet.",
    .code = {"TS0885", "check.degenerate"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
