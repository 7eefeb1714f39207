// NVIDIA Ampere, A100 SXM 80 GB. Rates are the datasheet's dense figures at boost clock, except
// where noted.
#include "arch/arch.h"

namespace tessera::arch {
namespace {

constexpr std::string_view capabilities[] = {"cuda", "mma_sync", "ldmatrix", "cp_async",
                                             "bf16", "tf32",     "redux"};

double peak_tflops(Precision p) {
  switch (p) {
    // fp32 accuracy on tensor cores: three tf32 products for one (3xTF32), a third of 156. Plain
    // FMA reaches 19.5.
    case Precision::fp32:
      return 52;
    case Precision::tf32:
      return 156;
    case Precision::bf16:
    case Precision::fp16:
    case Precision::fp8:  // no fp8 arithmetic: e4m3 storage, computed as fp16
      return 312;
  }
  return 0;
}

}  // namespace

extern const Arch sm_80 = {
    .name = "sm_80",
    .doc = "NVIDIA Ampere (A100): mma.sync, cp.async multistage",
    .device = "cuda",
    .nvcc_code = "-gencode=arch=compute_80,code=sm_80",
    .compute_capability = 80,
    .peak_tflops = peak_tflops,
    .bandwidth_gbs = 2039,
    .achievable_bandwidth_gbs = 1800,
    .launch_us = 3,
    .multiprocessors = 108,
    .shared_memory_per_block = 166912,  // 163 KiB
    .registers_per_multiprocessor = 65536,
    .max_registers_per_thread = 255,
    .l2_bytes = 40LL << 20,
    .vector_bytes = 16,
    .limits = {.threads_per_block = 1024,
               .static_shared_memory = 49152,
               .shared_memory_per_multiprocessor = 167936,
               .named_barriers = 16},
    .capabilities = capabilities,
    .products = mma_sync,
};

}  // namespace tessera::arch
