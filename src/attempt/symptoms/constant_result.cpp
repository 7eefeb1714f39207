// The result is one constant.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom constant_result;
const Symptom constant_result = {
    .name = "every element of the result is the same",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "constant"; },
    .cause =
        "The store does not depend on its place: an index that never moves, or one value that "
        "is broadcast.",
    .where = "the index of the loads inside the loop",
    .remedy = "Let the loads use the same coordinates as the store.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
