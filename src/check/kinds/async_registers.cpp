// Registers of a wgmma under way are not touched, and accesses of them are fenced before the next
// wgmma.
//
// Groups of wgmma complete in order; a wait for all but the latest n ends the older ones.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind async_registers = {
    .name = "async_registers",
    .number = 14,
    .law =
        "Registers of a wgmma under way are not touched, and accesses of them are fenced before "
        "the next wgmma.",
    .code = {"TS0866", "check.async_registers"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
