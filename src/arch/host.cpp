// The machine that tessera runs on. What it is follows from the processor's own flags at start
// (microseconds, nothing is timed): the rates are upper bounds, good for a roofline floor and for
// ordering patterns, not for prediction.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "arch/arch.h"
#include "base/processors.h"

namespace tessera::arch {
namespace {

struct Host {
  int cores = 1;
  double ghz = 3.0;
  int vector_bytes = 16;
  double flops_per_cycle = 8;  // fp32, one core, fused multiply-add counted as two
  int64_t last_cache = 8 << 20;
  std::vector<int64_t> core_caches;
  std::string_view abilities[6] = {"host"};
  std::size_t ability_count = 1;
};

/// The highest clock that the system states for core 0; 3 GHz when it states none.
double stated_ghz() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double khz = 0;
  if (file >> khz && khz > 0) return khz / 1e6;
  return 3.0;
}

void add(Host& h, std::string_view ability) {
  h.abilities[h.ability_count++] = ability;
}

void detect_simd(Host& h) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    h.vector_bytes = 64;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    h.vector_bytes = 32;
  }
  const bool fma = __builtin_cpu_supports("fma");
  h.flops_per_cycle = h.vector_bytes / 4.0 * 2 * (fma ? 2 : 1);
  if (fma) add(h, "fma");
  if (h.vector_bytes >= 32) add(h, "avx2");
  if (h.vector_bytes >= 64) add(h, "avx512");
  add(h, "simd");
#elif defined(__aarch64__)
  h.vector_bytes = 16;
  h.flops_per_cycle = 4 * 2 * 2;
  add(h, "fma");
  add(h, "simd");
#endif
}

Host detect() {
  Host h;
  h.cores = processors();
  h.ghz = stated_ghz();
  detect_simd(h);
  if (const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) h.last_cache = bytes;
  for (const int level : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(level); bytes > 0) h.core_caches.push_back(bytes);
  return h;
}

const Host& machine() {
  static const Host h = detect();
  return h;
}

/// Every precision is computed in fp32 arithmetic on the host.
double peak_tflops(Precision) {
  const Host& h = machine();
  return h.cores * h.ghz * h.flops_per_cycle / 1e3;
}

/// GB/s: what one core can draw, up to the eight memory channels of a large server.
double bandwidth() {
  return std::min(20.0 * machine().cores, 300.0);
}

/// GB/s: half a cache line a cycle and core, what a core's own caches give.
double cached_bandwidth() {
  constexpr double bytes_per_cycle = 32;
  return machine().cores * machine().ghz * bytes_per_cycle;
}

}  // namespace

extern const Arch host = {
    .name = "host",
    .doc = "this machine's processor: vectorized, multi-threaded C++",
    .device = "cpu",
    .nvcc_code = "",
    .peak_tflops = peak_tflops,
    .bandwidth_gbs = bandwidth(),
    .achievable_bandwidth_gbs = bandwidth(),
    .cached_bandwidth_gbs = cached_bandwidth(),
    .launch_us = 2,  // waking a team of threads
    .multiprocessors = machine().cores,
    .shared_memory_per_block = 0,
    .registers_per_multiprocessor = 0,
    .max_registers_per_thread = 0,
    .l2_bytes = machine().last_cache,
    .core_caches = machine().core_caches,
    .vector_bytes = machine().vector_bytes,
    .capabilities = {machine().abilities, machine().ability_count},
};

}  // namespace tessera::arch
