// The kernel's tensors are not the pattern's.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom other_tensors;
const Symptom other_tensors = {
    .name = "the kernel takes other tensors than the pattern has",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::not_the_pattern; },
    .cause =
        "Number, order, element type or extents of the kernel's tensors differ from the "
        "pattern's inputs and outputs.",
    .where = "the kernel's parameters, beside the list of tensors in the skeleton's head",
    .remedy =
        "Take inputs first and outputs last, in the head's order; constants such as a tile's "
        "size do not count.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
