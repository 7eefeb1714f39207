// Elements that it must depend on have no part in it.
#include "attempt/depends.h"
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom too_few_elements;
const Symptom too_few_elements = {
    .name = "elements have no part in the result that must have one",
    .shows = [](const Verdict& v) -> bool {
      const Dependence d = dependence_of(v);
      return d.missing && !d.foreign;
    },
    .cause =
        "A loop ends early or starts late, a condition is too strict, or an index stays where "
        "it is.",
    .where =
        "the bounds and conditions around the loads of the tensor that `depends` names, along "
        "the dim that it names",
    .remedy = "Let the loop run over the elements that `depends` names as well.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
