// A CUDA source whose two sides are compiled apart: the device side by nvcc into a cubin, the host
// side as plain C++ that finds its kernels in that cubin by name.
//
// nvcc reads such a source for the device, for the host, and has the C++ compiler read what it made
// of it once more, although the host side launches kernels and nothing else. What a source must do:
//   #define TESSERA_SIDES_APART 1           before it includes this: it may be compiled so
//   TESSERA_KERNEL(...) void name(...)      a kernel, in no namespace: `name` is its symbol
//   TESSERA_ENTRY(name)                     what is launched
//   TESSERA_ENTRY_OF("part", kernel)        the same of a kernel whose symbol is mangled: `part` of
//                                           it that no other kernel of the source has. What only
//                                           the host side would use, a template's instance, the
//                                           device side must name too
//   #if TESSERA_DEVICE_SIDE                 around what the host side does not know
//   #if TESSERA_HOST_SIDE                   around what launches
// Both are 1 when nvcc compiles the two at once (toolkits without cudaLibraryLoadData).
#pragma once

#if !defined(TESSERA_DEVICE_SIDE) && !defined(TESSERA_HOST_SIDE)
#define TESSERA_DEVICE_SIDE 1
#define TESSERA_HOST_SIDE 1
#elif !defined(TESSERA_HOST_SIDE)
#define TESSERA_HOST_SIDE 0
#elif !defined(TESSERA_DEVICE_SIDE)
#define TESSERA_DEVICE_SIDE 0
#endif

#if TESSERA_DEVICE_SIDE
#include <cuda_runtime.h>
#else
#include <cuda_runtime_api.h>
#endif

#define TESSERA_KERNEL(...) extern "C" __global__ __launch_bounds__(__VA_ARGS__)

#if TESSERA_HOST_SIDE
#include <atomic>
#include <cstring>
#include <mutex>

namespace tessera {

#if TESSERA_DEVICE_SIDE

/// What cudaLaunchKernelExC and its like take for a kernel.
template <class... P>
cudaError_t find(void (*kernel)(P...), const void** found) {
  *found = reinterpret_cast<const void*>(kernel);
  return cudaSuccess;
}
inline cudaError_t find(const void* kernel, const void** found) {
  *found = kernel;
  return cudaSuccess;
}
#define TESSERA_ENTRY(name) (name)
#define TESSERA_ENTRY_OF(part, ...) (__VA_ARGS__)

#else

// The cubin's bytes, in this library's own read-only data.
__asm__(
    ".pushsection .rodata\n"
    ".balign 64\n"
    ".globl tessera_device_code\n"
    ".hidden tessera_device_code\n"
    "tessera_device_code:\n"
    ".incbin \"" TESSERA_CUBIN
    "\"\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden"))) const unsigned char tessera_device_code[];

/// The device code of this library, loaded at the first use, for all devices: a handle belongs to
/// no context, and each device gets the code at its first launch.
inline cudaError_t device_code(cudaLibrary_t* library) {
  static std::mutex loading;
  static cudaLibrary_t loaded = nullptr;
  const std::lock_guard<std::mutex> lock(loading);
  if (loaded == nullptr) {
    // Loading is no work on a stream: a capture that another thread or this one has begun may go
    // on.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    const bool exchanged = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    const cudaError_t status =
        cudaLibraryLoadData(&loaded, tessera_device_code, nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (exchanged) (void)cudaThreadExchangeStreamCaptureMode(&mode);
    if (status != cudaSuccess) {
      loaded = nullptr;
      return status;
    }
  }
  *library = loaded;
  return cudaSuccess;
}

/// The one kernel of the library whose symbol has `part` in it.
inline cudaError_t kernel_with(const char* part, cudaLibrary_t library, cudaKernel_t* found) {
  constexpr unsigned most = 64;
  cudaKernel_t kernels[most];
  unsigned count = 0;
  cudaError_t status = cudaLibraryGetKernelCount(&count, library);
  if (status != cudaSuccess) return status;
  if (count > most) return cudaErrorInvalidValue;
  status = cudaLibraryEnumerateKernels(kernels, count, library);
  *found = nullptr;
  for (unsigned i = 0; i < count && status == cudaSuccess; ++i) {
    const char* symbol = nullptr;
    status = cudaFuncGetName(&symbol, reinterpret_cast<const void*>(kernels[i]));
    if (status != cudaSuccess || std::strstr(symbol, part) == nullptr) continue;
    if (*found != nullptr) return cudaErrorInvalidValue;
    *found = kernels[i];
  }
  if (status == cudaSuccess && *found == nullptr) return cudaErrorSymbolNotFound;
  return status;
}

/// A kernel of the device code, found by its symbol or a part of it at the first launch. Its handle
/// serves every device, so that a launch reads one pointer.
class Entry {
 public:
  constexpr Entry(const char* symbol, bool whole) : symbol_(symbol), whole_(whole) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  cudaError_t find(const void** kernel) {
    *kernel = found_.load(std::memory_order_acquire);
    if (*kernel != nullptr) return cudaSuccess;
    cudaLibrary_t library = nullptr;
    cudaKernel_t handle = nullptr;
    cudaError_t status = device_code(&library);
    if (status != cudaSuccess) return status;
    status = whole_ ? cudaLibraryGetKernel(&handle, library, symbol_)
                    : kernel_with(symbol_, library, &handle);
    if (status != cudaSuccess) return status;
    *kernel = reinterpret_cast<const void*>(handle);
    found_.store(*kernel, std::memory_order_release);
    return cudaSuccess;
  }

 private:
  const char* symbol_;
  bool whole_;
  std::atomic<const void*> found_{nullptr};
};

/// What cudaLaunchKernelExC and its like take for a kernel.
inline cudaError_t find(Entry& entry, const void** found) {
  return entry.find(found);
}
#define TESSERA_NAMED_ENTRY(symbol, whole)      \
  ([]() -> tessera::Entry& {                    \
    static tessera::Entry entry(symbol, whole); \
    return entry;                               \
  }())
#define TESSERA_ENTRY(name) TESSERA_NAMED_ENTRY(#name, true)
#define TESSERA_ENTRY_OF(part, ...) TESSERA_NAMED_ENTRY(part, false)

#endif  // TESSERA_DEVICE_SIDE

}  // namespace tessera
#endif  // TESSERA_HOST_SIDE
