// The compiler does not know a name.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom unknown_name;
const Symptom unknown_name = {
    .name = "the compiler does not know a name",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::does_not_compile &&
             (mentions(v, "was not declared") || mentions(v, "is undefined") ||
              mentions(v, "does not name a type"));
    },
    .cause = "A function or type of another header, or of the other target, is used.",
    .where = "the line that is named, and the includes",
    .remedy =
        "Include its header, or write the function out. What a kernel is given is "
        "tessera/kernel.h.",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
