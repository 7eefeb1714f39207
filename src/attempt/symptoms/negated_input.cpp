// The sign of an input is the other one.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom negated_input;
const Symptom negated_input = {
    .name = "the sign of an input is wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation == "negated_input";
    },
    .cause =
        "It is subtracted where it must be added, or the operands of a difference are "
        "exchanged.",
    .where = "the sign before each use of the input that is named",
    .remedy = "Turn the sign around.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
