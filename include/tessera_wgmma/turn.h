// A ring of buffers in shared memory, each with barriers that are waited on by the parity of their
// phase.
#pragma once

#include "tessera/sides.h"

#if TESSERA_DEVICE_SIDE
#include <cstdint>

namespace tessera_wgmma {

/// Where a warp stands in the ring: which buffer, and the parity of its phase.
template <int Stages>
struct Turn {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
  __device__ __forceinline__ void skip(int count) {
    const int to = stage + count;
    parity ^= to / Stages & 1;
    stage = to % Stages;
  }
};

}  // namespace tessera_wgmma
#endif
