// Everything is wrong by different amounts.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_reduction;
const Symptom wrong_reduction = {
    .name = "everything is wrong by different amounts",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->lies == "everywhere" && v.wrong->relation.empty();
    },
    .cause =
        "The sum or the function itself is another one: a bound of the reduction, an operand that "
        "is left out, an epilogue in another order, a biased variance for an unbiased one.",
    .where = "the innermost loop's bounds, then the epilogue against the pattern's meaning",
    .remedy =
        "Recompute the first wrong element by hand from the meaning in the skeleton's head, and "
        "compare the terms.",
    .weight = 4,
};

}  // namespace tessera::attempt::symptoms
