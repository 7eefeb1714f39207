// Part of the end is missing or wrong.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom missing_tail;
const Symptom missing_tail = {
    .name = "part of the end is missing or wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->lies.starts_with("tail of");
    },
    .cause =
        "The extent is not a multiple of the tile, of the vector or of the share of a thread, and "
        "what is left over is handled wrongly.",
    .where = "the bound of the loop over that dim, and how the number of tiles is rounded",
    .remedy =
        "Round the number of tiles up, and mask or clamp the last one; or take the left-over "
        "elements in a loop of their own.",
    .weight = 6,
};

}  // namespace tessera::attempt::symptoms
