// It depends on elements that it must not depend on.
#include "attempt/depends.h"
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom too_many_elements;
const Symptom too_many_elements = {
    .name = "it depends on elements that it must not depend on",
    .shows = [](const Verdict& v) -> bool {
      const Dependence d = dependence_of(v);
      return d.foreign && !d.missing;
    },
    .cause =
        "A mask or a condition is missing or turned around, or a bound lets too many elements "
        "in.",
    .where =
        "the conditions and bounds around the loads of the tensor that `depends` names, along "
        "the dim that it names",
    .remedy =
        "Hide the elements that `depends` names: a mask sets a score to -infinity before the "
        "maximum, not to 0; a bound ends before them.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
