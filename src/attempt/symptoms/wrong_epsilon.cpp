// Each row has a factor near 1.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_epsilon;
const Symptom wrong_epsilon = {
    .name = "each row has a factor near 1",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation == "nearly_scaled_rows";
    },
    .cause =
        "What each row is divided or multiplied by is a little off: an epsilon of another size or "
        "in another place (within the root or outside of it), n for n - 1, a constant under the "
        "root.",
    .where = "the epsilon and the count that go into the norm, the variance or the total of a row",
    .remedy =
        "Take epsilon and count as the meaning has them, at their place. Types and accumulators "
        "are right: leave them.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
