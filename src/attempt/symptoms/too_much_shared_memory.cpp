// A block asks for more shared memory than there is.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom too_much_shared_memory;
const Symptom too_much_shared_memory = {
    .name = "a block asks for too much shared memory",
    .shows = [](const Verdict& v) -> bool {
      return mentions(v, "too much shared data") || mentions(v, "exceeds shared memory");
    },
    .cause =
        "The stages of the ring, the tiles and the epilogue's buffer together are larger than "
        "a block's shared memory.",
    .where = "the sizes in the compiler's message; the number of stages times the bytes of one",
    .remedy =
        "Take fewer stages or a smaller tile. Above 48 KiB the memory must be dynamic "
        "(`extern __shared__`), with the launch's attribute set.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
