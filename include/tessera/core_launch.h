// What the host sides of kernels that are lowered from the core share: reading a launch's integers,
// and the launch itself.
#pragma once

#include <stdint.h>

#include "tessera/integers.h"
#include "tessera/kernel.h"
#include "tessera/limits.h"
#include "tessera/programmatic_launch.h"
#include "tessera/tensor_map.h"

#if TESSERA_HOST_SIDE
namespace tessera {

using tessera_launch_error::check;
using tessera_launch_error::fail;

/// A parameter's value lies in [lower, upper) and leaves `residue` of `modulus`: 0, or -1.
inline int check_integer(const char* name, int64_t value, int64_t lower, int64_t upper,
                         int64_t modulus, int64_t residue) {
  if (value >= lower && value < upper && floor_remainder(value, modulus) == residue) return 0;
  if (modulus == 1)
    return fail("%s = %lld: expected %lld to %lld", name, static_cast<long long>(value),
                static_cast<long long>(lower), static_cast<long long>(upper - 1));
  return fail("%s = %lld: expected %lld modulo %lld, from %lld to %lld", name,
              static_cast<long long>(value), static_cast<long long>(residue),
              static_cast<long long>(modulus), static_cast<long long>(lower),
              static_cast<long long>(upper - 1));
}

/// The launch has this many integers, and at least this many tensors: 0, or -1.
inline int check_counts(const tessera_launch* launch, int ints, int tensors) {
  if (launch->int_count == ints && launch->tensor_count >= tensors) return 0;
  return fail("the launch has %d integers and %d tensors, expected %d and at least %d",
              launch->int_count, launch->tensor_count, ints, tensors);
}

/// Where the launch's integers `first` and the next say that a tensor begins: which one it is, and
/// from which of its elements, of so many bytes. 0, or -1.
inline int find_tensor(const tessera_launch* launch, const char* name, int first, int element_bytes,
                       void** data) {
  const int64_t which = launch->ints[first], offset = launch->ints[first + 1];
  if (which < 0 || which >= launch->tensor_count || offset < 0)
    return fail("%s is tensor %lld at element %lld: the launch has %d tensors", name,
                static_cast<long long>(which), static_cast<long long>(offset),
                launch->tensor_count);
  *data = static_cast<char*>(launch->tensors[which]) + offset * element_bytes;
  return 0;
}

/// What a kernel asks of every launch.
struct Shape {
  int threads;
  int cluster;
  int shared_bytes;
  bool early_start;  // the kernel waits for the grids before it
};

/// What a device gives it, asked for once.
struct Room {
  int multiprocessors = 0;
};

/// The multiprocessors that blocks of the kernel can use at once: whole clusters of them.
inline int ask_room(const void* kernel, int device, const Shape& s, Room& room) {
  if (s.shared_bytes > 48 * 1024 &&
      check(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, s.shared_bytes),
          "cudaFuncSetAttribute(shared memory)"))
    return -1;
  if (check(cudaDeviceGetAttribute(&room.multiprocessors, cudaDevAttrMultiProcessorCount, device),
            "cudaDeviceGetAttribute"))
    return -1;
  if (s.cluster == 1) return 0;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(s.cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(s.cluster));
  config.blockDim = dim3(static_cast<unsigned>(s.threads));
  config.dynamicSmemBytes = static_cast<size_t>(s.shared_bytes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config),
            "cudaOccupancyMaxActiveClusters"))
    return -1;
  const int whole = clusters * s.cluster;
  if (whole == 0) return fail("no cluster of %d blocks finds room on this device", s.cluster);
  if (whole < room.multiprocessors) room.multiprocessors = whole;
  return 0;
}

/// The kernel on the current device; -1 with the reason in tessera_last_error().
template <class Entry>
int prepare(Entry&& entry, PerDevice<Room>& rooms, const Shape& s, const void** kernel,
            int64_t* multiprocessors) {
  int device = 0;
  if (check(find(entry, kernel), "finding the kernel") ||
      check(cudaGetDevice(&device), "cudaGetDevice"))
    return -1;
  const Room* const room =
      rooms.get(device, [&](Room& r) { return ask_room(*kernel, device, s, r); });
  if (room == nullptr) return -1;
  *multiprocessors = room->multiprocessors;
  return 0;
}

inline int enqueue(const void* kernel, const Shape& s, int64_t blocks, void** arguments,
                   void* stream) {
  if (blocks < 1 || blocks > INT32_MAX || blocks % s.cluster != 0)
    return fail("a grid of %lld blocks: expected a multiple of %d from %d to 2^31 - 1",
                static_cast<long long>(blocks), s.cluster, s.cluster);
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(s.threads));
  config.dynamicSmemBytes = static_cast<size_t>(s.shared_bytes);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = attributes;
  if (s.cluster > 1) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {static_cast<unsigned>(s.cluster), 1, 1};
    config.numAttrs = 1;
  }
  if (s.early_start) allow_early_start(config, attributes);
  return check(cudaLaunchKernelExC(&config, kernel, arguments), "cudaLaunchKernelExC");
}

}  // namespace tessera
#endif  // TESSERA_HOST_SIDE
