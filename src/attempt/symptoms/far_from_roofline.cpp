// Far from the roofline.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom far_from_roofline;
const Symptom far_from_roofline = {
    .name = "far from the roofline",
    .shows = [](const Verdict& v) -> bool { return far_from_peak(v) && v.variants.size() < 2; },
    .cause = "The machine could do it in less than half of the time.",
    .where = "what bounds it, as the verdict says",
    .remedy =
        "Declare tunables (tiles, unrolling, threads) and try again: all combinations are timed.",
    .weight = 2,
};

}  // namespace tessera::attempt::symptoms
