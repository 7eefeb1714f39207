// All errors go one way.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom one_way_errors;
const Symptom one_way_errors = {
    .name = "the errors all go one way",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "one_way"; },
    .cause =
        "Rounding goes up as often as down, so it is not that: a constant or an epsilon is a "
        "little off, a small term is missing, or values are cut instead of rounded.",
    .where =
        "constants and epsilons against those of the meaning; small addends; conversions to "
        "narrower types that drop bits",
    .remedy = "Compare each constant with the meaning first; then round where the source cuts.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
