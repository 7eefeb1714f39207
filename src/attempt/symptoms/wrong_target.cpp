// An instruction is not one of the architecture.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_target;
const Symptom wrong_target = {
    .name = "the architecture has no such instruction",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::does_not_compile &&
             (mentions(v, "not supported on .target") || mentions(v, "requires .target") ||
              mentions(v, "target-specific option"));
    },
    .cause =
        "The source uses an instruction of another generation: tcgen05 on Hopper, wgmma "
        "before it, or one that needs the `a` of sm_90a.",
    .where = "the instruction that the assembler names",
    .remedy = "Use the architecture's own: docs/instructions.md lists those of Hopper.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
