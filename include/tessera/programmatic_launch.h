// Programmatic dependent launch: a kernel's launch and its prologue overlap the end of the kernel
// before it on the stream.
//
// On when the compiler is given -DTESSERA_PROGRAMMATIC_LAUNCH=1 (the architecture has the ability
// "programmatic_launch") and the process' environment does not say TESSERA_PROGRAMMATIC_LAUNCH=0.
// The rule that makes it right: a kernel that is launched with the attribute touches global memory
// (loads, stores, prefetches, TMA, atomics) only after a wait that returns when the kernel before
// it has ended and its writes are visible. That kernel did the same, so everything earlier on the
// stream has ended, too: kernels of libraries, copies and ours mix freely.
#pragma once

#include <stdlib.h>

#include "tessera/sides.h"

#ifndef TESSERA_PROGRAMMATIC_LAUNCH
#define TESSERA_PROGRAMMATIC_LAUNCH 0
#endif
#if TESSERA_PROGRAMMATIC_LAUNCH && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "griddepcontrol needs sm_90; build without TESSERA_PROGRAMMATIC_LAUNCH"
#endif
#ifdef TST_EMULATE
#include "tessera_emulate/grid.h"
#endif

namespace tessera {

/// Returns when the kernels before this one on the stream have ended and their writes are visible.
__device__ __forceinline__ void wait_for_previous() {
#if defined(TST_EMULATE)
  tessera_emulate::wait_for_previous();
#elif TESSERA_PROGRAMMATIC_LAUNCH && TESSERA_DEVICE_SIDE
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The next kernel's blocks may come once every block of this grid has called this or has ended.
__device__ __forceinline__ void allow_next() {
#if TESSERA_PROGRAMMATIC_LAUNCH && TESSERA_DEVICE_SIDE && !defined(TST_EMULATE)
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// A pointer that the compiler knows nothing about: not that its memory is constant while the
/// kernel runs, which `const T* __restrict__` of a kernel's parameter says and which lets loads
/// rise above a wait.
template <class Pointer>
__device__ __forceinline__ void forget(Pointer& pointer) {
#if TESSERA_PROGRAMMATIC_LAUNCH && TESSERA_DEVICE_SIDE && !defined(TST_EMULATE)
  size_t address = __cvta_generic_to_global(pointer);  // it stays known to be global memory
  asm volatile("" : "+l"(address)::"memory");
  pointer = static_cast<Pointer>(__cvta_global_to_generic(address));
#else
  (void)pointer;
#endif
}

/// The beginning of a kernel: waits, and every access through `pointers` comes after that.
///
/// The next kernel is let in at once: its blocks take only what this grid leaves free, since all
/// blocks of this grid have been placed by then, and while they wait they issue nothing. Later
/// would hide less of the launch behind a kernel of a few microseconds. Not before the wait: at
/// most two grids then share the machine.
template <class... Pointer>
__device__ __forceinline__ void after_previous(Pointer&... pointers) {
  wait_for_previous();
  (forget(pointers), ...);
  allow_next();
}

#if TESSERA_HOST_SIDE

/// Whether launches of this process carry the attribute; asked once a library. Drivers before CUDA
/// 12.3 cannot capture such a launch in a graph.
inline bool programmatic_launch() {
#if TESSERA_PROGRAMMATIC_LAUNCH
  static const bool on = [] {
    const char* const v = getenv("TESSERA_PROGRAMMATIC_LAUNCH");
    if (v != nullptr && v[0] == '0' && v[1] == '\0') return false;
    int driver = 0;
    return cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
  }();
  return on;
#else
  return false;
#endif
}

/// Appends the attribute to `config` where launches carry it; `attributes` has room for it.
inline void allow_early_start(cudaLaunchConfig_t& config, cudaLaunchAttribute* attributes) {
  if (!programmatic_launch()) return;
  cudaLaunchAttribute& a = attributes[config.numAttrs++];
  a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attributes;
}

/// Enqueues a kernel that begins with after_previous (or waits before its first access otherwise).
#if TESSERA_DEVICE_SIDE
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes,
                   cudaStream_t stream, A... arguments) {
#else
// The kernel's parameters are not known here: each argument must have the type of its parameter.
template <class... A>
cudaError_t launch(Entry& kernel, unsigned blocks, unsigned threads, size_t shared_bytes,
                   cudaStream_t stream, A... arguments) {
#endif
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  allow_early_start(config, &attribute);
#if TESSERA_DEVICE_SIDE
  const cudaError_t status = cudaLaunchKernelEx(&config, kernel, P(arguments)...);
#else
  void* pointers[] = {static_cast<void*>(&arguments)...};
  const void* found = nullptr;
  cudaError_t status = find(kernel, &found);
  if (status == cudaSuccess) status = cudaLaunchKernelExC(&config, found, pointers);
#endif
  if (status != cudaSuccess) (void)cudaGetLastError();  // it is reported once, here
  return status;
}

#endif  // TESSERA_HOST_SIDE

}  // namespace tessera
