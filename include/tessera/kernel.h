/* The contract of a built kernel: one shared library with this C interface, on every architecture.
 *
 * A library is found by its content hash and used through four symbols. Everything that a caller
 * may vary at run time (problem extents, strides, raster order, splits) travels in `ints`, so that
 * one binary serves many problems; the names and order of `ints` are stated by tessera_describe().
 * The cache, the evaluator, the composed module and an exported package all speak only this.
 */
#pragma once
#include <stdint.h>

#define TESSERA_KERNEL_ABI 1
/* Libraries are compiled with hidden symbols, so that two in one process share nothing. */
#define TESSERA_KERNEL_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tessera_launch {
  /* Data pointers: the pattern's inputs in order, then its outputs in order. Device pointers on
   * CUDA, host pointers on `host`. A pointer addresses element 0 of the tensor (its storage offset
   * is already applied). */
  void* const* tensors;
  int32_t tensor_count;
  /* Run-time integers, in the order of describe()'s "ints". */
  const int64_t* ints;
  int32_t int_count;
} tessera_launch;

/* A static JSON text:
 * {"abi":1,"name":...,"ints":["m","n",...],"tensors":["a","b","d"],"arch":"sm_90a"}. */
TESSERA_KERNEL_API const char* tessera_describe(void);

/* Bytes of scratch memory that tessera_run needs for this launch, aligned to 256; negative when the
 * kernel cannot run it, and then tessera_last_error() says why. */
TESSERA_KERNEL_API int64_t tessera_workspace_size(const tessera_launch* launch);

/* Enqueues the kernel on `stream` (a cudaStream_t; ignored on `host`) and returns without waiting.
 * Allocates nothing, synchronizes nothing, and is safe to capture in a CUDA graph. 0 on success;
 * else tessera_last_error() says why. */
TESSERA_KERNEL_API int tessera_run(const tessera_launch* launch, void* workspace, void* stream);

/* The last error of this thread, or "". */
TESSERA_KERNEL_API const char* tessera_last_error(void);

#ifdef __cplusplus
}
#endif
