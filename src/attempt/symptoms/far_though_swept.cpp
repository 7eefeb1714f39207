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
        "Put one part at a time behind a tunable, in two ways that are both right (another "
        "formula of the function, stores past the cache or not, more or fewer elements at once): "
        "what moves the time most is what bounds it. Without a part a kernel is wrong, and is not "
        "timed.",
    .weight = 2,
};

}  // namespace tessera::attempt::symptoms
