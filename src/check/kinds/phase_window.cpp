// A wait for a phase begins when the phase before is known to be complete, and ends before the next
// one can be.
//
// An mbarrier tells its waiters one bit. A wait for phase n sees the bit of phase n - 2 before
// phase n - 1 is complete, and waits for ever when phase n + 1 is. Lanes that are not elected count
// apart.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind phase_window = {
    .name = "phase_window",
    .number = 11,
    .law =
        "A wait for a phase begins when the phase before is known to be complete, and ends before "
        "the next one can be.",
    .code = {"TS0861", "check.phase_window"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
