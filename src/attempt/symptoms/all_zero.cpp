// The result is zero.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom all_zero;
const Symptom all_zero = {
    .name = "the result is zero",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "zero"; },
    .cause =
        "What is computed is never stored, or the accumulator is reset after the sum, or a branch "
        "is never taken.",
    .where = "the way of the accumulator from its last addition to the store",
    .remedy = "Store the accumulator's value after the last addition.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
