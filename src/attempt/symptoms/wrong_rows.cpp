// Whole rows are wrong.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_rows;
const Symptom wrong_rows = {
    .name = "whole rows are wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && (v.wrong->lies == "rows" || v.wrong->lies == "every n-th") &&
             v.wrong->relation.empty();
    },
    .cause =
        "What is computed once a row (a maximum, a sum, a mean) is wrong for these rows, or one "
        "stage or thread of a repeating schedule does it wrongly.",
    .where = "the reduction over the row, and what depends on the row's number modulo the period",
    .remedy =
        "Check the start value of the reduction and its bounds; with a period, what is reused "
        "before it is read.",
    .weight = 5,
};

}  // namespace tessera::attempt::symptoms
