// Bank conflicts of shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/f2_view.h"

namespace tessera {

/// Shared memory as hardware offers it: `count` banks of `width` bytes, each serving one word at a
/// time. All NVIDIA GPUs since sm_50 have 32 banks of 4 bytes.
struct Banks {
  int64_t count = 32;
  int64_t width = 4;
};

/// How many passes an access takes for each that it needs at least: 1 is free of conflicts.
/// `addresses` are byte offsets, one per thread, of `bytes` bytes each, aligned to `bytes`. Threads
/// are served in groups whose accesses fill the banks once (with 16 bytes, quarters of a warp);
/// threads of a group that read the same word share it. The result is that of the worst group.
int64_t bank_conflicts(const std::vector<int64_t>& addresses, int64_t bytes, Banks banks = {});

/// The same for `threads` to byte addresses as a map over F2, by ranks. `bytes`, count and width
/// are powers of two and the addresses are multiples of `bytes`; all threads are of one warp.
int64_t bank_conflicts(const F2View& threads, int64_t bytes, Banks banks = {});

}  // namespace tessera
