// Bytes beside a tensor were written.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom written_beside;
const Symptom written_beside = {
    .name = "bytes beside a tensor were written",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::out_of_bounds; },
    .cause =
        "An index goes past the extent: an inclusive bound, a last tile without a mask, strides of "
        "another dim, or stores of a wider element type than the tensor's.",
    .where = "the index of each store: its bound, its strides, the type of its pointer",
    .remedy =
        "Compare the index with the extents in the head of the skeleton; mask the last tile; use "
        "the element type that the contract names.",
    .weight = 6,
};

}  // namespace tessera::attempt::symptoms
