// Wrong elements lie along a diagonal.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_diagonal;
const Symptom wrong_diagonal = {
    .name = "wrong elements lie along a diagonal",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && (v.wrong->lies == "a diagonal" || v.wrong->lies == "a triangle" ||
                         v.wrong->lies == "a band");
    },
    .cause =
        "A comparison of two indices (a causal mask, a triangle, a window) is off by one or by an "
        "offset, turns the other way, or is left out.",
    .where =
        "each comparison of a row's index with a column's, and the blocks that are passed over "
        "because of it",
    .remedy =
        "Compare the bounds that the verdict names with those of the meaning: `<` for `<=`, the "
        "diagonal's offset, the indices of the whole tensor rather than of the tile.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
