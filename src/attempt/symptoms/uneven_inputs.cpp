// Inputs weigh unevenly.
#include "attempt/depends.h"
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom uneven_inputs;
const Symptom uneven_inputs = {
    .name = "inputs weigh unevenly against each other",
    .shows = [](const Verdict& v) -> bool {
      const Dependence d = dependence_of(v);
      return d.uneven;
    },
    .cause =
        "The steps of the epilogue stand in another order than the meaning has: an addend or "
        "a factor comes behind the function instead of before it. Or one input has a factor "
        "that the meaning has not.",
    .where =
        "the line where the inputs that weigh otherwise meet, and the order of functions, "
        "factors and addends there",
    .remedy =
        "Follow the meaning from the inside out: what is added before a function stands in "
        "its argument.",
    .weight = 9,
};

}  // namespace tessera::attempt::symptoms
