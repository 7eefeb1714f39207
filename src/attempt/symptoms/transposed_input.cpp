// An input is read with its dims exchanged.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom transposed_input;
const Symptom transposed_input = {
    .name = "an input is transposed",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation == "transposed_input";
    },
    .cause =
        "The index of a load has its two coordinates exchanged: a row-major matrix is read as "
        "column-major.",
    .where = "the index of each load of the input that is named",
    .remedy = "Exchange the two coordinates in that index: the stride goes with the other one.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
