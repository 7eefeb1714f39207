// It ran out of memory.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom no_memory;
const Symptom no_memory = {
    .name = "there was not enough memory",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::out_of_memory; },
    .cause =
        "The scratch memory that tessera_workspace_size asks for, or what the kernel "
        "allocates itself, is more than there is.",
    .where = "tessera_workspace_size, and allocations in tessera_run",
    .remedy =
        "Keep partial results in registers or shared memory, or split the work so that less "
        "of it is under way.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
