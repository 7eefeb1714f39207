// Every wait ends in every execution.
//
// A run takes all that can go on. If none can and some warp has not ended, no execution goes on:
// what each waits for does not depend on the order.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind deadlock = {
    .name = "deadlock",
    .number = 10,
    .law = "Every wait ends in every execution.",
    .code = {"TS0860", "check.deadlock"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
