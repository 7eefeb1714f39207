// It depends on other elements than it must.
#include "attempt/depends.h"
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom other_elements;
const Symptom other_elements = {
    .name = "it depends on other elements than it must",
    .shows = [](const Verdict& v) -> bool {
      const Dependence d = dependence_of(v);
      return d.missing && d.foreign;
    },
    .cause = "An index is wrong: its coordinate, its stride or its offset.",
    .where =
        "the index of each load of the tensor that `depends` names: the coordinate of the "
        "dim, its stride, and pointers that are made of it",
    .remedy =
        "Compare the indices that `depends` names with those that the meaning has for this "
        "element, and take the stride from the extents of this very tensor.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
