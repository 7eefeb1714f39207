// NaN comes from outside of a tensor.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom read_of_poison;
const Symptom read_of_poison = {
    .name = "NaN comes from outside of a tensor",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::non_finite && v.wrong &&
             (v.wrong->lies.starts_with("tail of") || v.wrong->lies == "one element");
    },
    .cause =
        "What surrounds every input is NaN while a kernel is verified: the last tile reads beyond "
        "the extent.",
    .where = "the loads of the last rows and columns",
    .remedy = "Clamp the index or give 0 for elements outside.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
