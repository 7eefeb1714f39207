// Bound by arithmetic, and far from its rate.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom far_from_arithmetic_rate;
const Symptom far_from_arithmetic_rate = {
    .name = "far from the arithmetic's rate",
    .shows = [](const Verdict& v) -> bool {
      return far_from_peak(v) && v.measured->bound == "arithmetic" && v.variants.size() < 2;
    },
    .cause =
        "The machine could do all operations in less than half of the time: its units wait for "
        "operands, or the fast ones are not used.",
    .where = "the innermost loop: loads an operation, branches, the type of the sums",
    .remedy =
        "Make a tile of results at once, so that each loaded value is used many times from "
        "registers. On a GPU use tensor cores where the element type has them; on host keep the "
        "innermost loop contiguous and free of branches, so that it is vectorized. When the loops "
        "are so, declare tunables (tile sizes, unrolling): all combinations are timed.",
    .weight = 2,
};

}  // namespace tessera::attempt::symptoms
