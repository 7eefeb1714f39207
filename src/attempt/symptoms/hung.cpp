// The kernel does not end.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom hung;
const Symptom hung = {
    .name = "the kernel does not end",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::hang; },
    .cause =
        "A loop's condition never becomes false (an unsigned counter that runs below 0, a step of "
        "0), threads wait for each other, or the kernel is slower than the limit.",
    .where =
        "the step and the end of each loop; waits in a loop; barriers that not all threads reach",
    .remedy = "Correct the loop; or give more time by --limit.",
    .weight = 6,
};

}  // namespace tessera::attempt::symptoms
