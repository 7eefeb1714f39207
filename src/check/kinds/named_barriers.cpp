// Warps that come to a named barrier say the same number of threads, come once to a turn, and to
// the next only when they know that the last is complete.
//
// A turn is complete when as many threads have come as they say.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind named_barriers = {
    .name = "named_barriers",
    .number = 29,
    .law =
        "Warps that come to a named barrier say the same number of threads, come once to a turn, "
        "and "
        "to the next only when they know that the last is complete.",
    .code = {"TS0869", "check.named_barriers"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
