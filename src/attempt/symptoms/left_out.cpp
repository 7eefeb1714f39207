// An input has no part in the result.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom left_out;
const Symptom left_out = {
    .name = "an input is left out",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "left_out"; },
    .cause = "An operand is never read, or what is computed of it is not used.",
    .where = "the addends and factors of the meaning, against the lines that read the input",
    .remedy = "Add or multiply the input that is named where the meaning has it.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
