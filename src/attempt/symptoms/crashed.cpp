// The process died.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom crashed;
const Symptom crashed = {
    .name = "the process died",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::crash; },
    .cause =
        "A pointer is wild: an index far out of bounds, a null workspace, an array on the stack "
        "that is too large.",
    .where =
        "the line that the sanitizer names, where there is one; else the largest index of each "
        "access",
    .remedy =
        "Ask for scratch memory by tessera_workspace_size, and check each index against the "
        "extents.",
    .weight = 5,
};

}  // namespace tessera::attempt::symptoms
