// What a kernel may use of an architecture, beyond the shapes of single instructions.
#pragma once

#include <cstdint>

namespace tessera::arch {

/// 0: the architecture lacks it.
struct Limits {
  int threads_per_block = 0;
  int64_t static_shared_memory = 0;              // bytes of a block without opting in
  int64_t shared_memory_per_multiprocessor = 0;  // bytes, 1024 of them taken for each block
  int named_barriers = 0;                        // of a block, number 0 (__syncthreads) counted
  int64_t mbarrier_count = 0;                    // most arrivals of a phase
  int64_t mbarrier_bytes = 0;                    // most pending bytes, either sign
  int register_step = 0;                         // setmaxnreg: multiples of this,
  int least_registers = 0;                       // from this
  int most_registers = 0;                        // to this a thread
  int cluster_blocks = 0;                        // on every device of the architecture
  int cluster_blocks_opted_in = 0;               // where the kernel asks for non-portable sizes

  friend bool operator==(const Limits&, const Limits&) = default;
};

}  // namespace tessera::arch
