// An input is read as a coarser type.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom rounded_input;
const Symptom rounded_input = {
    .name = "an input is rounded",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation == "rounded_input";
    },
    .cause =
        "What is read of the input is kept in a narrower type before it is used: where it is "
        "packed, copied or converted.",
    .where = "conversions and packing of the input that is named; not the accumulator",
    .remedy = "Keep its elements in their own type until they are multiplied.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
