// One element is wrong.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom one_element;
const Symptom one_element = {
    .name = "a single element is wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->lies == "one element" && v.wrong->relation.empty();
    },
    .cause =
        "A bound is off by one at a corner, two threads write the element, or it is written "
        "before its sum is whole.",
    .where = "the first and the last index of each loop, and who else writes this element",
    .remedy = "Follow the one thread that writes the element, from its index to its store.",
    .weight = 5,
};

}  // namespace tessera::attempt::symptoms
