// D = A B^T in bf16 by CUTLASS: A is M x K, B is N x K, D is M x N, each with its elements of a row side by side.
#include <cstdint>

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "tessera/kernel.h"

#ifndef TILE_N
#define TILE_N 128
#endif

using namespace cute;
using Element = cutlass::bfloat16_t;
using Blocks = Shape<_128, Int<TILE_N>, _64>;
using Clusters = Shape<_2, _1, _1>;
constexpr int aligned = 8;  // elements of 16 bytes

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Blocks, Clusters,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, cutlass::layout::RowMajor, aligned, Element,
    cutlass::layout::RowMajor, aligned, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, aligned, Element,
    cutlass::layout::ColumnMajor, aligned, float, Blocks, Clusters,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

static thread_local const char* error = "";

static Gemm::Arguments product_of(const void* a, const void* b, void* d, int m, int n, int k, int64_t row_of_d) {
  const auto rows = make_stride(int64_t(k), _1{}, int64_t(0));
  const auto results = make_stride(row_of_d, _1{}, int64_t(0));
  Gemm::Arguments out{cutlass::gemm::GemmUniversalMode::kGemm,
                      {m, n, k, 1},
                      {static_cast<const Element*>(a), rows, static_cast<const Element*>(b), rows},
                      {{1.0f, 0.0f}, nullptr, {}, static_cast<Element*>(d), results}};
  out.hw_info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  return out;
}

static int run(const void* a, const void* b, void* d, int m, int n, int k, int64_t row_of_d, void* stream) {
  Gemm product;
  const Gemm::Arguments arguments = product_of(a, b, d, m, n, k, row_of_d);
  cutlass::Status status = product.initialize(arguments, nullptr, static_cast<cudaStream_t>(stream));
  if (status == cutlass::Status::kSuccess) status = product.run(static_cast<cudaStream_t>(stream));
  if (status == cutlass::Status::kSuccess) return 0;
  error = cutlass::cutlassGetStatusString(status);
  return 1;
}

TESSERA_KERNEL_API const char* tessera_last_error(void) { return error; }
TESSERA_KERNEL_API int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
TESSERA_KERNEL_API const char* tessera_describe(void) {
  return "{\"abi\":1,\"name\":\"product\",\"ints\":[],\"tensors\":[\"a\",\"b\",\"d\"],\"arch\":\"sm_90a\"}";
}
