// The launch is refused.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom launch_refused;
const Symptom launch_refused = {
    .name = "the launch was refused",
    .shows = [](const Verdict& v) -> bool {
      return v.failure == Failure::not_loadable &&
             (mentions(v, "too many resources") || mentions(v, "invalid configuration") ||
              mentions(v, "invalid argument") || mentions(v, "cluster"));
    },
    .cause =
        "Threads, registers times threads, shared memory or the cluster are beyond what a "
        "block may have, or a tensor map was given a stride or box that it does not take.",
    .where =
        "the grid, the block and the bytes of shared memory in tessera_run; "
        "cudaFuncSetAttribute before it",
    .remedy =
        "At most 1024 threads and 65536 registers a block. Set MaxDynamicSharedMemorySize "
        "above 48 KiB. TMA wants strides that are multiples of 16 bytes.",
    .weight = 8,
};

}  // namespace tessera::attempt::symptoms
