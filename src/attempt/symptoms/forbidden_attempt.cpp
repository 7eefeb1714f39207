// It reached beyond its sandbox.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom forbidden_attempt;
const Symptom forbidden_attempt = {
    .name = "it tried what the sandbox does not allow",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::forbidden; },
    .cause =
        "The source, or the compiler told by it, opened a file of somebody else, a socket or "
        "another process, or it passed a limit of memory, disk or processes.",
    .where = "includes by absolute paths; constructors that run when the library is loaded",
    .remedy = "Compute the pattern from its tensors alone, in memory that the launch names.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
