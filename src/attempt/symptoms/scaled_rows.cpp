// Each row has a factor of its own.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom scaled_rows;
const Symptom scaled_rows = {
    .name = "each row is a multiple of what it must be",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "scaled_rows"; },
    .cause =
        "What is computed once a row (a total, a maximum, a mean of squares) is wrong, and "
        "each element is multiplied or divided by it: the start value of the reduction is not "
        "its identity, a term is missing or counts twice, or the number of terms is another.",
    .where =
        "the start value of the accumulator of the row, the bounds of its loop, and what it "
        "is divided by",
    .remedy = "Start a sum at 0 and a maximum at -infinity; take each element of the row once.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
