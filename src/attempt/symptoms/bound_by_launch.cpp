// The launch is most of the time.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom bound_by_launch;
const Symptom bound_by_launch = {
    .name = "the launch takes most of the time",
    .shows = [](const Verdict& v) -> bool {
      return v.measured && v.measured->bound == "launch" &&
             v.measured->ms > 2 * v.measured->floor_ms;
    },
    .cause =
        "The work is so small that starting a kernel takes longer; several launches of one "
        "call add up.",
    .where = "the number of launches in tessera_run, and memsets or copies before them",
    .remedy =
        "Do all of it in one launch. A larger pattern that includes its neighbours gains more "
        "than a faster kernel.",
    .weight = 3,
};

}  // namespace tessera::attempt::symptoms
