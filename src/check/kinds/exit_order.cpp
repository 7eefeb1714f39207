// A thread ends when its bulk stores have read shared memory, and a block when some thread of it
// knows that copies, products and arrivals of other blocks there are over.
//
// Shared memory goes to another block when the block has ended. An arrival at another block's
// barrier is known to be over by its phase, or by a release of the thread that arrived.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind exit_order = {
    .name = "exit_order",
    .number = 30,
    .law =
        "A thread ends when its bulk stores have read shared memory, a block when it is known "
        "there "
        "that copies, products and arrivals of other blocks are over.",
    .code = {"TS0870", "check.exit_order"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
