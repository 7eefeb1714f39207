// Elements were never written.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom unwritten_outputs;
const Symptom unwritten_outputs = {
    .name = "elements were never written",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::incomplete; },
    .cause =
        "No thread or iteration writes them: a loop ends early, a number of blocks is rounded "
        "down, or a condition keeps a store back.",
    .where = "the bounds of the outermost loops or of the grid, and every condition around a store",
    .remedy =
        "Cover every element: round up the number of tiles, and check that each output of the "
        "pattern has a store.",
    .weight = 6,
};

}  // namespace tessera::attempt::symptoms
