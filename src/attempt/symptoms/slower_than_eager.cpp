// Slower than PyTorch.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom slower_than_eager;
const Symptom slower_than_eager = {
    .name = "slower than PyTorch",
    .shows = [](const Verdict& v) -> bool {
      if (!v.measured) return false;
      for (const Peer& p : v.measured->peers) {
        if (p.name == "eager" && p.ms > 0 && p.ms < v.measured->ms) return true;
      }
      return false;
    },
    .cause = "The kernel moves more bytes or keeps fewer units at work than PyTorch's own.",
    .where = "the innermost loop: strides, vectorization, reuse; and how many threads work",
    .remedy =
        "Bound by memory: one pass over each tensor, contiguous in the innermost loop. Bound by "
        "arithmetic: tiles that are reused from registers, `#pragma omp parallel for` on host, "
        "tensor cores on a GPU.",
    .weight = 3,
};

}  // namespace tessera::attempt::symptoms
