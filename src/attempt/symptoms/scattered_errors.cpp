// Wrong elements lie without an order.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom scattered_errors;
const Symptom scattered_errors = {
    .name = "wrong elements lie without an order",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->lies == "scattered" && v.wrong->relation.empty();
    },
    .cause =
        "A race: what is read was not yet written, or was written again. Or a function that "
        "is wrong for some values alone.",
    .where =
        "barriers between writing and reading shared memory; accumulation by several threads; "
        "the branches of the function",
    .remedy =
        "Run it twice: places that change are a race. Places that stay depend on the values: "
        "look at the inputs there.",
    .weight = 5,
};

}  // namespace tessera::attempt::symptoms
