// Far from the roofline, whatever the tunables are.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom far_though_swept;
const Symptom far_though_swept = {
    .name = "far from the roofline with all choices of tunables",
    .shows = [](const Verdict& v) -> bool { return far_from_peak(v) && v.variants.size() >= 2; },
    .cause =
        "The roofline is of peak rates. What keeps a kernel from them is seldom a tile's size: too "
        "few accesses in flight, loops that are not vectorized, functions as exp and log, threads "
        "that wait for each other, or results that are written through the cache.",
    .where = "the innermost loop, and what each thread does before and after it",
    .remedy =
        "Take one part out at a time (the function, the store, the wait) and see by how much the "
        "time falls: what falls most is what bounds it. Results that nobody reads soon can be "
        "stored past the cache.",
    .weight = 2,
};

}  // namespace tessera::attempt::symptoms
