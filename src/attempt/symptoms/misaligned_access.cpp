// A vector access is not aligned.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom misaligned_access;
const Symptom misaligned_access = {
    .name = "an access is not aligned",
    .shows = [](const Verdict& v) -> bool { return mentions(v, "misaligned"); },
    .cause =
        "A load or store of 4, 8 or 16 bytes begins at an address that is no multiple of its "
        "size: a row whose stride is odd, or a view with an offset.",
    .where = "casts to float4, uint4 and the like, and the strides in the skeleton's head",
    .remedy =
        "Use the wide access only where strides and offset are multiples of it; read the rest "
        "element by element.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
