// One tile is wrong.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_block;
const Symptom wrong_block = {
    .name = "a block of the result is wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation.empty() &&
             (v.wrong->lies == "a block" || v.wrong->lies == "tail of block");
    },
    .cause =
        "One tile's coordinates, its first loop trip or its stage differ from the others': "
        "the last tile, a tile that two blocks take, or none.",
    .where = "the map from blocks to tiles, and what the first and the last trip of the loop do",
    .remedy =
        "Compare the box of the wrong elements with the tile's extents: an equal size says "
        "which tile it is.",
    .weight = 5,
};

}  // namespace tessera::attempt::symptoms
