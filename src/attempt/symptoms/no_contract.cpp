// The library has not the contract's functions.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom no_contract;
const Symptom no_contract = {
    .name = "the library has not the contract's functions",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::not_loadable; },
    .cause =
        "One of tessera_describe, tessera_workspace_size, tessera_run, tessera_last_error is "
        "missing or not extern \"C\", or it refused the launch.",
    .where = "the end of the source, where they are defined, and the message of tessera_last_error",
    .remedy = "Begin with `tessera try ... --skeleton`: it defines all four.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
