// The result is transposed.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom transposed_operand;
const Symptom transposed_operand = {
    .name = "the result is transposed",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "transposed"; },
    .cause =
        "Two dims change places: a row-major tensor is read or written as column-major, or m and n "
        "of a product are swapped.",
    .where = "the strides in the index of the output and of each operand",
    .remedy = "Exchange the two strides. Each view in the skeleton's head is shape:stride.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
