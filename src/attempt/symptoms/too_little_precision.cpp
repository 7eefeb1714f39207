// The errors are those of a coarser type.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom too_little_precision;
const Symptom too_little_precision = {
    .name = "the errors are those of a coarser type",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::wrong_result && v.wrong && v.wrong->relation == "rounded";
    },
    .cause =
        "Sums are accumulated, or operands rounded, in a narrower type than the precision class "
        "allows.",
    .where = "the type of the accumulator and of what is kept between the loops",
    .remedy = "Accumulate in float (fp32), and round once, at the store.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
