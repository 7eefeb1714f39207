// What a kernel's library says of its last failure (tessera_last_error() of kernel.h), for the host
// sides that are C++.
#pragma once

#include <cstdio>
#include <cuda_runtime_api.h>

namespace tessera_launch_error {

/// Of this thread; "" where nothing failed.
inline char* last_error() {
  static thread_local char text[512] = "";
  return text;
}

/// Keeps the text, as printf makes it; -1, which a launch returns.
template <class... Args>
int fail(const char* format, Args... args) {
  std::snprintf(last_error(), 512, format, args...);
  return -1;
}
inline int fail(const char* text) {
  return fail("%s", text);
}

/// 0, or the failure of what CUDA was asked for.
inline int check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return 0;
  (void)cudaGetLastError();
  return fail("%s: %s", what, cudaGetErrorString(status));
}

}  // namespace tessera_launch_error
