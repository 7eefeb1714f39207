// A score is -inf exactly where the meaning does not see its key, before it is compared or raised,
// and what it is multiplied with is finite.
//
// Which keys a row sees is compared, bound by bound, with where scores become -inf.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind mask = {
    .name = "mask",
    .number = 17,
    .law =
        "A score is -inf exactly where the meaning does not see its key, before it is compared or "
        "raised, and what it is multiplied with is finite.",
    .code = {"TS0882", "check.mask"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
