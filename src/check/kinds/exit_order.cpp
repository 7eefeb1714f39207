// A thread ends when its bulk stores have read shared memory.
//
// Shared memory goes to another block when the block has ended.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind exit_order = {
    .name = "exit_order",
    .number = 30,
    .law = "A thread ends when its bulk stores have read shared memory.",
    .code = {"TS0870", "check.exit_order"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
