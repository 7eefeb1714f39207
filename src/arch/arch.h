// What a machine can do, as data. Realizers ask for capabilities and limits; they never compare
// names.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "arch/limits.h"
#include "arch/mma.h"
#include "diag/result.h"
#include "numeric/dtype.h"

namespace tessera::arch {

struct Arch {
  std::string_view name;  // "sm_90a", "sm_80", "host"
  std::string_view doc;
  std::string_view device;     // torch device type: "cuda", "cpu"
  std::string_view nvcc_code;  // "-gencode=arch=compute_90a,code=sm_90a"; empty on host
  int compute_capability = 0;  // 90, 80: the least device that runs its code; 0 when not CUDA

  /// Dense multiply-add throughput in TFLOP/s by arithmetic class, as the vendor states it (host:
  /// measured at start).
  double (*peak_tflops)(Precision);
  double bandwidth_gbs = 0;             // main memory, stated
  double achievable_bandwidth_gbs = 0;  // what a plain copy reaches
  /// Data of at most l2_bytes come at this rate, where they stay in the last cache from call to
  /// call; 0: measuring empties the caches, so everything comes from main memory.
  double cached_bandwidth_gbs = 0;
  double launch_us = 0;  // the least time of one kernel launch

  int multiprocessors = 0;
  int64_t shared_memory_per_block = 0;  // bytes, opt-in limit
  int registers_per_multiprocessor = 0;
  int max_registers_per_thread = 0;
  int64_t l2_bytes = 0;                  // of the last cache
  std::span<const int64_t> core_caches;  // bytes of a core's own data caches, the nearest first
  int vector_bytes = 16;                 // widest plain access of one thread

  Limits limits;  // of what instructions use; all 0 on host

  /// Named abilities: "wgmma", "tma", "mma_sync", "cp_async", "cluster", "stmatrix", "setmaxnreg",
  /// "simd", "fp8", "programmatic_launch" (a kernel may start before the one before it has ended),
  /// ...
  std::span<const std::string_view> capabilities;
  [[nodiscard]] bool has(std::string_view capability) const;
  /// GB/s that so many bytes come at: `main`, which is main memory's, unless the cache keeps them.
  [[nodiscard]] double bandwidth_of(double bytes, double main) const;
  /// Its matrix instructions; none when null.
  std::span<const Mma> (*products)() = nullptr;
  /// The first of them whose operands are of this class; nullptr when there is none.
  [[nodiscard]] const Mma* product(Precision operands) const;
};

/// What a kernel has, in words: "2 threads, vectors of 64 bytes (fma, avx2, avx512), caches of 48
/// KiB and 2 MiB a core, 480 MiB in all".
std::string resources_of(const Arch& arch);

std::span<const Arch* const> all();
/// By name; the error lists what there is.
Result<const Arch*> find(std::string_view name);

}  // namespace tessera::arch
