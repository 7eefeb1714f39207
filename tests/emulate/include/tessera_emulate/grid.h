// What griddepcontrol.wait does, as far as a host can show it: until a thread has waited, the
// memory of the launch must not be touched.
#pragma once

#include <utility>
#include <vector>

#include "tessera_emulate/block.h"

namespace tessera_emulate {

/// The pages of what guarded() gave for tensors and workspace.
inline std::vector<std::pair<void*, std::size_t>>& launch_memory() {
  static std::vector<std::pair<void*, std::size_t>> areas;
  return areas;
}

/// Memory of the launch: a block of guarded() that only waited threads may touch.
inline unsigned char* global_memory(std::size_t bytes) {
  unsigned char* const at = guarded(bytes);
  const std::size_t page = 4096;
  auto* const first = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) / page * page);
  launch_memory().emplace_back(first, (bytes + page - 1) / page * page);
  return at;
}

inline bool& waited() {
  static bool done = false;
  return done;
}
inline void protect(int how) {
  for (const auto& [at, bytes] : launch_memory())
    if (bytes > 0 && mprotect(at, bytes, how) != 0) stop("mprotect");
}
inline void wait_for_previous() {
  if (std::exchange(waited(), true)) return;
  protect(PROT_READ | PROT_WRITE);
}
/// Before a kernel that may have started early.
inline void begin_grid() {
  waited() = false;
  protect(PROT_NONE);
}

}  // namespace tessera_emulate
