// What the checker leaves open, a run may still show to be wrong.
#pragma once

#include "check/check.h"
#include "equivalence/equivalence.h"

namespace tessera::equivalence {

/// compare(). Where nothing is refuted and something is not decided, what a run shows, a fault of
/// the machine's or numbers that are not what is meant, refutes the kernel in the report: it is
/// told under `placement` if that is open, else under the first kind that is.
Answer decide(const core::Kernel& kernel, const check::Means& means, check::Report& report,
              const Effort& effort = {});

}  // namespace tessera::equivalence
