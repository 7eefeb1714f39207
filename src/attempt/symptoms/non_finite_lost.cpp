// Infinities or NaN differ from PyTorch's.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom non_finite_lost;
const Symptom non_finite_lost = {
    .name = "infinities or NaN differ from PyTorch's",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::non_finite; },
    .cause =
        "A maximum drops NaN, a masked value is multiplied by zero, exp overflows before the "
        "maximum is taken off, or memory outside of the tensor (which is NaN here) is read.",
    .where = "max, min and where; the maximum of a softmax; loads of the last tile",
    .remedy =
        "Take off the row's maximum before exp; use functions that keep NaN; do not read past the "
        "extent even where the value is not used in the sum.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
