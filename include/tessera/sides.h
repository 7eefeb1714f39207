// A CUDA source whose two sides are compiled apart: the device side by nvcc into a cubin, the host
// side as plain C++ that finds its kernels in that cubin by name.
//
// nvcc reads such a source for the device, for the host, and has the C++ compiler read what it made
// of it once more, although the host side launches kernels and nothing else. What a source must do:
//   #define TESSERA_SIDES_APART 1           before it includes this: it may be compiled so
//   TESSERA_KERNEL(...) void name(...)      a kernel, in no namespace: `name` is its symbol
//   TESSERA_ENTRY(name)                     what is launched
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
#define TESSERA_ENTRY(name) (name)

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

/// A kernel of the device code, found by its name at the first launch. Its handle serves every
/// device, so that a launch reads one pointer.
class Entry {
 public:
  constexpr explicit Entry(const char* name) : name_(name) {}
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  cudaError_t find(const void** kernel) {
    *kernel = found_.load(std::memory_order_acquire);
    if (*kernel != nullptr) return cudaSuccess;
    cudaLibrary_t library = nullptr;
    cudaKernel_t handle = nullptr;
    cudaError_t status = device_code(&library);
    if (status == cudaSuccess) status = cudaLibraryGetKernel(&handle, library, name_);
    if (status != cudaSuccess) return status;
    *kernel = reinterpret_cast<const void*>(handle);
    found_.store(*kernel, std::memory_order_release);
    return cudaSuccess;
  }

 private:
  const char* name_;
  std::atomic<const void*> found_{nullptr};
};

/// What cudaLaunchKernelExC and its like take for a kernel.
inline cudaError_t find(Entry& entry, const void** found) {
  return entry.find(found);
}
#define TESSERA_ENTRY(name)             \
  ([]() -> tessera::Entry& {            \
    static tessera::Entry entry(#name); \
    return entry;                       \
  }())

#endif  // TESSERA_DEVICE_SIDE

}  // namespace tessera
#endif  // TESSERA_HOST_SIDE
