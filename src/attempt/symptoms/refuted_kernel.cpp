// The checker shows a wrong schedule.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom refuted_kernel;
const Symptom refuted_kernel = {
    .name = "the checker shows a wrong schedule",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::refuted; },
    .cause =
        "There is an order of the threads in which a value is read before it is there, or after it "
        "was overwritten, or waited for for ever.",
    .where = "the two accesses of the counterexample, in the author's lines",
    .remedy =
        "Order them: a barrier or a wait between the two, in the place that the counterexample "
        "names.",
    .weight = 6,
};

}  // namespace tessera::attempt::symptoms
