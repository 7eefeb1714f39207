// What CUTLASS' headers name and plain C++ does not know, for a host side that nvcc does not read
// (tessera/sides.h). Include it before them. Nothing here is ever called.
#pragma once

#include "tessera/sides.h"

#if !TESSERA_DEVICE_SIDE
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define __launch_bounds__(...)

extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
void __syncthreads();
void __syncwarp(unsigned = ~0u);
float __shfl_xor_sync(unsigned, float, int);

// Without a compiler's version this header has nothing, with one it wants nvcc's own names.
#include "cutlass/arch/wmma.h"

// What the rest asks is how old CUDA is.
#define __CUDACC_VER_MAJOR__ (CUDART_VERSION / 1000)
#define __CUDACC_VER_MINOR__ (CUDART_VERSION % 1000 / 10)
#define __CUDACC_VER_BUILD__ 0
#endif
