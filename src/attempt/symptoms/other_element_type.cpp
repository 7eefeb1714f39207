// The output holds another element type.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom other_element_type;
const Symptom other_element_type = {
    .name = "the output holds another element type",
    .shows = [](const Verdict& v) -> bool { return v.wrong && v.wrong->relation == "other_type"; },
    .cause = "The pointer of the output is cast to a type that is not the tensor's.",
    .where = "the casts of launch->tensors[...]",
    .remedy =
        "Take the element types from the head of the skeleton (`tessera try ... --skeleton`).",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
