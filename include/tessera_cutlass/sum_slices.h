/* Adds the partial products of a K-sliced GEMM. No CUTLASS here. */
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "tessera/programmatic_launch.h"

namespace tessera {
namespace split_detail {

// A small output has few threads to hide latency with, so each keeps several loads in flight.
template <int Unroll>
__global__ void __launch_bounds__(128)
    sum_slices_kernel(float4* out, float4 const* partial, int slices, int64_t quads) {
  int64_t const at = blockIdx.x * int64_t{128} + threadIdx.x;
  after_previous(out, partial);
  if (at >= quads) return;
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll Unroll
  for (int s = 0; s < slices; ++s) {
    float4 const x = __ldcs(partial + s * quads + at);
    sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
  }
  out[at] = sum;
}

}  // namespace split_detail

/// out[i] = sum over s < slices of partial[s * elements + i], in the order of s. `elements` is a
/// multiple of 4, both arrays are 16-byte aligned; else cudaErrorInvalidValue.
inline cudaError_t sum_slices(float* out, float const* partial, int slices, int64_t elements,
                              cudaStream_t stream) {
  bool const aligned =
      (reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(partial)) % 16 == 0;
  if (!aligned || elements <= 0 || elements % 4 != 0 || slices <= 0) return cudaErrorInvalidValue;
  int64_t const quads = elements / 4;
  return launch(split_detail::sum_slices_kernel<8>, static_cast<unsigned>((quads + 127) / 128), 128,
                0, stream, reinterpret_cast<float4*>(out), reinterpret_cast<float4 const*>(partial),
                slices, quads);
}

}  // namespace tessera
