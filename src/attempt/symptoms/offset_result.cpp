// The result differs by a constant.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom offset_result;
const Symptom offset_result = {
    .name = "the result differs by one constant",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "offset"; },
    .cause =
        "Something is added that the pattern has not, or left out: a bias, an epsilon, the "
        "start value of a sum, a mean that is not taken off.",
    .where = "the start value of each accumulator, and the addends in the pattern's meaning",
    .remedy = "Compare each addend of the meaning with the source.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
