#include <fmt/format.h>
#include <string>
#include <vector>

#include "arch/arch.h"
#include "base/text.h"

namespace tessera::arch {
namespace {

constexpr int64_t kib = 1024, mib = kib * kib;

std::string bytes_text(int64_t bytes) {
  return bytes % mib == 0 ? fmt::format("{} MiB", bytes / mib) : fmt::format("{} KiB", bytes / kib);
}

std::string of_a_processor(const Arch& arch) {
  std::vector<std::string> abilities, own;
  for (const std::string_view c : arch.capabilities)
    if (c != arch.name && c != "simd") abilities.emplace_back(c);
  for (const int64_t bytes : arch.core_caches) own.push_back(bytes_text(bytes));
  const std::string with = abilities.empty() ? "" : fmt::format(" ({})", join(abilities, ", "));
  const std::string caches = own.empty() ? "" : join(own, " and ") + " a core, ";
  return fmt::format("{} threads, vectors of {} bytes{}, caches of {}{} in all",
                     arch.multiprocessors, arch.vector_bytes, with, caches,
                     bytes_text(arch.l2_bytes));
}

std::string of_a_gpu(const Arch& arch) {
  return fmt::format(
      "{} multiprocessors, each with {} of shared memory for a block and {} registers ({} for a "
      "thread), an L2 cache of {}",
      arch.multiprocessors, bytes_text(arch.shared_memory_per_block),
      arch.registers_per_multiprocessor, arch.max_registers_per_thread, bytes_text(arch.l2_bytes));
}

}  // namespace

std::string resources_of(const Arch& arch) {
  return arch.device == "cuda" ? of_a_gpu(arch) : of_a_processor(arch);
}

}  // namespace tessera::arch
