// NVIDIA Hopper, H200 SXM. Rates are the datasheet's dense figures at boost clock, except where
// noted.
#include "arch/arch.h"

namespace tessera::arch {
namespace {

constexpr std::string_view capabilities[] = {
    "cuda",    "mma_sync",      "ldmatrix",   "cp_async",
    "wgmma",   "tma",           "mbarrier",   "stmatrix",
    "cluster", "dsmem",         "setmaxnreg", "fp8",
    "bf16",    "tf32",          "redux",      "programmatic_launch",
    "elect",   "vector_atomics"};

double peak_tflops(Precision p) {
  switch (p) {
    // fp32 accuracy on tensor cores: three tf32 products for one (3xTF32), a third of 495. Plain
    // FMA reaches 67.
    case Precision::fp32:
      return 165;
    case Precision::tf32:
      return 495;
    case Precision::bf16:
    case Precision::fp16:
      return 989;
    case Precision::fp8:
      return 1979;
  }
  return 0;
}

}  // namespace

extern const Arch sm_90a = {
    .name = "sm_90a",
    .doc = "NVIDIA Hopper (H200): wgmma, TMA, clusters",
    .device = "cuda",
    .nvcc_code = "-gencode=arch=compute_90a,code=sm_90a",
    .compute_capability = 90,
    .peak_tflops = peak_tflops,
    .bandwidth_gbs = 4800,
    .achievable_bandwidth_gbs = 4250,  // a plain copy, measured
    .launch_us = 2.5,                  // back-to-back small kernels in one stream
    .multiprocessors = 132,
    .shared_memory_per_block = 232448,  // 227 KiB
    .registers_per_multiprocessor = 65536,
    .max_registers_per_thread = 255,
    .l2_bytes = 60LL << 20,
    .vector_bytes = 16,
    .limits = {.threads_per_block = 1024,
               .static_shared_memory = 49152,
               .shared_memory_per_multiprocessor = 233472,
               .named_barriers = 16,
               .mbarrier_count = (1 << 20) - 1,
               .mbarrier_bytes = (1 << 20) - 1,
               .register_step = 8,
               .least_registers = 24,
               .most_registers = 256,
               .cluster_blocks = 8,
               .cluster_blocks_opted_in = 16},
    .capabilities = capabilities,
    .products = mma_sync,
};

}  // namespace tessera::arch
