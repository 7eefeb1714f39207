// Some elements count more often than others.
#include "attempt/depends.h"
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom counted_otherwise;
const Symptom counted_otherwise = {
    .name = "some elements count another number of times than the others",
    .shows = [](const Verdict& v) -> bool {
      const Dependence d = dependence_of(v);
      return d.counted && !d.foreign && !d.missing;
    },
    .cause =
        "A part of the sum is added twice, or with another factor: blocks that overlap, a "
        "rest that begins before the blocks end, an accumulator that is added again.",
    .where = "the first and the last index of each block of the sum, and of the loop over the rest",
    .remedy =
        "Let each block begin where the one before it ends, so that each element counts once.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
