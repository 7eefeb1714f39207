// An input was modified.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom overwritten_input;
const Symptom overwritten_input = {
    .name = "an input was modified",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::input_modified; },
    .cause =
        "A store goes to an input: the order of tensors is mistaken, or the kernel works in place.",
    .where = "the indices of launch->tensors[...]: inputs in order first, then outputs",
    .remedy = "Write to the outputs alone. The skeleton's head lists the tensors in their order.",
    .weight = 6,
};

}  // namespace tessera::attempt::symptoms
