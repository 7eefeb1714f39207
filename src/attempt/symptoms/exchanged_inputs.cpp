// Two inputs are exchanged.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom exchanged_inputs;
const Symptom exchanged_inputs = {
    .name = "two inputs are exchanged",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation == "exchanged_inputs";
    },
    .cause =
        "Each of two inputs stands where the other one must: their pointers, or the operands "
        "of a function that is not symmetric.",
    .where = "the order of launch->tensors, and each line that reads one of the two",
    .remedy = "Exchange the two inputs that are named, in both places.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
