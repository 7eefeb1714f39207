// Registers spill.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom spills;
const Symptom spills = {
    .name = "registers spill",
    .shows = [](const Verdict& v) -> bool { return v.resources.value("spill_bytes", 0) > 0; },
    .cause = "A thread needs more registers than it has; values go to memory and back.",
    .where = "the size of the tile that one thread holds, and __launch_bounds__",
    .remedy = "Make the tile smaller, or give it more threads.",
    .weight = 4,
};

}  // namespace tessera::attempt::symptoms
