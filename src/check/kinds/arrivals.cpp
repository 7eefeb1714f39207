// Each phase gets as many arrivals as the barrier counts, and as many bytes as it expects, each
// from a thread that knows that the phase has begun.
//
// What comes to a barrier without that knowledge may count for another phase in some execution.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind arrivals = {
    .name = "arrivals",
    .number = 12,
    .law =
        "Each phase gets as many arrivals as the barrier counts, and as many bytes as it expects, "
        "each from a thread that knows that the phase has begun.",
    .code = {"TS0862", "check.arrivals"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
