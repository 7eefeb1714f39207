// The compiler does not end.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom compiler_too_slow;
const Symptom compiler_too_slow = {
    .name = "the compiler does not come to an end",
    .shows = [](const Verdict& v) -> bool { return v.failure == Failure::compiler_hangs; },
    .cause =
        "A loop over a large constant is unrolled whole, or templates are instantiated "
        "without end.",
    .where = "`#pragma unroll` over long loops, recursion in templates, large constexpr tables",
    .remedy = "Unroll a fixed small number of trips (`#pragma unroll 4`).",
    .weight = 7,
};

}  // namespace tessera::attempt::symptoms
