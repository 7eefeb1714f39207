// What is off is a multiple of an input or of a value of the meaning, or the result is by a factor
// near 1.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_constant;
const Symptom wrong_constant = {
    .name = "a constant is wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong &&
             (v.wrong->relation == "wrong_constant" || v.wrong->relation == "nearly_scaled");
    },
    .cause =
        "A number of the source is not the one of the meaning: the 1 of a complement such as 1 - "
        "s, a factor, a coefficient. By how much it is off stands before what it is multiplied "
        "with.",
    .where =
        "the numbers of the source where the value that is named is multiplied or added, against "
        "those of the ATen nodes in the skeleton's head",
    .remedy =
        "Write each constant with all digits of the meaning. Types and accumulators are right: "
        "leave them.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
