// Bound by memory, and far from its rate.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom far_from_memory_rate;
const Symptom far_from_memory_rate = {
    .name = "far from the memory's rate",
    .shows = [](const Verdict& v) -> bool {
      return far_from_peak(v) && v.measured->bound == "memory" && v.variants.size() < 2;
    },
    .cause =
        "The memory could move all tensors in less than half of the time: what the kernel does "
        "besides, or the way in which it asks for them, takes the rest.",
    .where =
        "the innermost loop: the order and width of its accesses, and what is computed again for "
        "each element",
    .remedy =
        "Read each element once, in the order in which it lies. Keep what several results need "
        "(sums, the overlap of windows) instead of computing it again. Let enough threads work "
        "that many accesses are in flight. When the loops are so, declare tunables (rows a thread, "
        "unrolling): all combinations are timed.",
    .weight = 2,
};

}  // namespace tessera::attempt::symptoms
