// The sanitizer names an invalid access.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom invalid_read;
const Symptom invalid_read = {
    .name = "the sanitizer names an invalid access",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::invalid_access ||
             (v.failure == Failure::crash && v.place.line > 0);
    },
    .cause = "At the line that is named, an access leaves the tensor, or a value is undefined.",
    .where = "that line: its index at the last iteration",
    .remedy = "Correct the bound or the index there.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
