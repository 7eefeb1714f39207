// CUTLASS 3.x kernels whose batches are arrays of pointers: each batch's matrices may lie anywhere.
// The kernel rewrites its tensor maps (in its workspace, a set for each multiprocessor) when it
// comes to another batch.
#pragma once

#include "tessera_cutlass/sm90_launch.hpp"
//
#include "cutlass/epilogue/collective/sm90_epilogue_array_tma_warpspecialized.hpp"
#include "cutlass/gemm/collective/sm90_mma_array_tma_gmma_ss_warpspecialized.hpp"
#include "cutlass/gemm/collective/sm90_mma_array_tma_gmma_ss_warpspecialized_fp8.hpp"
#include "cutlass/gemm/group_array_problem_shape.hpp"
#include "cutlass/gemm/kernel/sm90_gemm_array_tma_warpspecialized_cooperative.hpp"
#include "cutlass/gemm/kernel/sm90_gemm_array_tma_warpspecialized_pingpong.hpp"

namespace tessera_cutlass {

/// The matrices of all batches: batch l starts `l / inner * outer_bytes + l % inner * step_bytes`
/// after the first.
struct Batches {
  void* first = nullptr;
  int64_t step_bytes = 0;
  int64_t outer_bytes = 0;
};

/// Arrays of `count` pointers follow one another, each from a multiple of 256 bytes.
inline int64_t pointer_array_bytes(int64_t count) {
  return align256(count * static_cast<int64_t>(sizeof(void*)));
}

template <class T>
T** pointer_array(void* area, int which, int64_t count) {
  return reinterpret_cast<T**>(static_cast<char*>(area) + which * pointer_array_bytes(count));
}

template <int N>
struct BatchesOf {
  int inner;
  Batches matrix[N];
};

template <int N>
__global__ void fill_pointer_arrays(BatchesOf<N> batches, char* area, int64_t bytes, int count) {
  const int batch = blockIdx.x * blockDim.x + threadIdx.x;
  tessera::after_previous(area);
  if (batch >= count) return;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Batches& m = batches.matrix[i];
    reinterpret_cast<void**>(area + i * bytes)[batch] = static_cast<char*>(m.first) +
                                                        batch / batches.inner * m.outer_bytes +
                                                        batch % batches.inner * m.step_bytes;
  }
}

/// On the device, so that a CUDA graph repeats it with the pointers of its capture.
template <int N>
int fill_pointers(const BatchesOf<N>& batches, void* area, int64_t count, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((count + 127) / 128);
  return check(tessera::launch(fill_pointer_arrays<N>, blocks, 128, 0, stream, batches,
                               static_cast<char*>(area), pointer_array_bytes(count),
                               static_cast<int>(count)),
               "fill_pointer_arrays");
}

}  // namespace tessera_cutlass
