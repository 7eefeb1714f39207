// The result is a multiple of what it must be.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom scaled;
const Symptom scaled = {
    .name = "the result is a multiple of what it must be",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "scaled"; },
    .cause =
        "A factor is missing or applied twice: the scale of attention, 1/n of a mean, a sum that "
        "is reduced twice.",
    .where = "what follows the reduction, and the factors in the pattern's meaning",
    .remedy = "Compare each factor of the meaning with the source.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
