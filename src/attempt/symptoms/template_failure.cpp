// The arguments of a template do not fit together.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom template_failure;
const Symptom template_failure = {
    .name = "a template was given what it does not take",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::does_not_compile &&
             (mentions(v, "static assertion failed") || mentions(v, "static_assert") ||
              mentions(v, "no instance of") || mentions(v, "no matching function") ||
              mentions(v, "incomplete type"));
    },
    .cause =
        "Element types, layouts, alignments, tile or cluster of a CUTLASS template exclude "
        "each other, or a function is called with other types than it has.",
    .where =
        "the assertion's own text, and the header that it stands in; the arguments at the "
        "author's line",
    .remedy =
        "Hold the arguments against a configuration that is known to be good: `tessera "
        "examples search --rule RULE`. Change one of them at a time.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
