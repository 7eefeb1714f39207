// Each power has the greatest of scores taken off, of its own row, with its own score among them.
//
// So no power is above 1, and a factor of 2^(before - now) changes one greatest score for another.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind dominance = {
    .name = "dominance",
    .number = 24,
    .law =
        "Each power has the greatest of scores taken off, of its own row, with its own score among "
        "them.",
    .code = {"TS0884", "check.dominance"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
