// The result is shifted.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom shifted;
const Symptom shifted = {
    .name = "the result is shifted",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "shifted"; },
    .cause =
        "An index is off by one or by a constant: a loop starts at 1, or an offset is added that "
        "is none.",
    .where = "the start of the loops and the constants in the index of loads and stores",
    .remedy =
        "Start at element 0 of the view: its offset is already in the pointer, or stands in the "
        "skeleton's head.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
