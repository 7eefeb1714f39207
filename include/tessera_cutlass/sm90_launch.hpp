// Launches any CUTLASS 3.x kernel: what GemmUniversalAdapter does, with the hardware queried once
// and no allocation.
#pragma once

#include "tessera/limits.h"
#include "tessera_cutlass/abi.hpp"
#include "tessera_cutlass/sm90_entry.hpp"

#if TESSERA_HOST_SIDE
namespace tessera_cutlass {

/// A stride of CUTLASS' (rows, K or columns, batch) form: the mode that is not the constant 1 gets
/// `ld`.
template <class Stride>
Stride stride(int64_t ld, int64_t batch) {
  Stride s{};
  if constexpr (cute::is_static_v<decltype(cute::get<0>(s))>) {
    cute::get<1>(s) = ld;
  } else {
    cute::get<0>(s) = ld;
  }
  cute::get<2>(s) = batch;
  return s;
}

/// What is asked of a device for `kernel`, which may be launched there afterwards. 0 on success.
template <class Kernel, class Entry>
int ask_hardware(Entry&& entry, int device, cutlass::KernelHardwareInfo& info) {
  const void* kernel = nullptr;
  if (check(tessera::find(entry, &kernel), "finding the kernel") ||
      !takes(kernel, sizeof(typename Kernel::Params)) ||
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 Kernel::SharedStorageSize),
            "cudaFuncSetAttribute(shared memory)") ||
      check(cudaDeviceGetAttribute(&info.sm_count, cudaDevAttrMultiProcessorCount, device),
            "cudaDeviceGetAttribute")) {
    return -1;
  }
  info.device_id = device;
  using Cluster = typename Kernel::ClusterShape;
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cute::size<0>(Cluster{})),
                              static_cast<unsigned>(cute::size<1>(Cluster{})), 1};
  config.gridDim = dim3(cute::size<0>(Cluster{}), cute::size<1>(Cluster{}), 1);
  config.blockDim = dim3(Kernel::MaxThreadsPerBlock);
  config.dynamicSmemBytes = Kernel::SharedStorageSize;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return check(cudaOccupancyMaxActiveClusters(&info.max_active_clusters, kernel, &config),
               "cudaOccupancyMaxActiveClusters");
}

/// Multiprocessors and the most clusters that fit on the device at once. GPCs are ragged, so that
/// the second is less than the first divided by the cluster's size; asked once a device, it also
/// raises the kernel's shared memory limit there. `entry`: what TESSERA_ENTRY gives for the kernel.
template <class Kernel, class Entry>
const cutlass::KernelHardwareInfo* hardware(Entry&& entry) {
  static tessera::PerDevice<cutlass::KernelHardwareInfo> devices;
  int device = 0;
  if (check(cudaGetDevice(&device), "cudaGetDevice")) return nullptr;
  if (device >= devices.most) {
    fail("device %d: kernels are kept for %d devices", device, devices.most);
    return nullptr;
  }
  return devices.get(device, [&](cutlass::KernelHardwareInfo& info) {
    return ask_hardware<Kernel>(entry, device, info);
  });
}

template <class Kernel>
int64_t workspace_bytes(const typename Kernel::Arguments& arguments) {
  if (!Kernel::can_implement(arguments)) {
    return fail(
        "CUTLASS cannot implement this problem with this configuration (alignment or shape)");
  }
  return align256(static_cast<int64_t>(Kernel::get_workspace_size(arguments)));
}

/// Enqueues the kernel, which may start before the one before it on the stream has ended
/// (programmatic_launch.h). Not so stream-K, which clears its workspace by a memset before.
template <class Kernel, class Entry>
int enqueue(const typename Kernel::Arguments& arguments, Entry&& entry, void* workspace,
            cudaStream_t stream) {
  if (!Kernel::can_implement(arguments)) {
    return fail(
        "CUTLASS cannot implement this problem with this configuration (alignment or shape)");
  }
  if (Kernel::initialize_workspace(arguments, workspace, stream) != cutlass::Status::kSuccess) {
    return fail("CUTLASS could not initialize its workspace");
  }
  typename Kernel::Params params = Kernel::to_underlying_arguments(arguments, workspace);
  using Cluster = typename Kernel::ClusterShape;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(cute::size<0>(Cluster{})),
                                  static_cast<unsigned>(cute::size<1>(Cluster{})), 1};
  cudaLaunchConfig_t config{};
  config.gridDim = Kernel::get_grid_shape(params);
  config.blockDim = Kernel::get_block_shape();
  config.dynamicSmemBytes = Kernel::SharedStorageSize;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 1;
  if constexpr (!stream_k<Kernel>) tessera::allow_early_start(config, attributes);
  const void* kernel = nullptr;
  if (check(tessera::find(entry, &kernel), "finding the kernel")) return -1;
  void* pointers[] = {&params};
  return check(cudaLaunchKernelExC(&config, kernel, pointers), "cudaLaunchKernelExC");
}

/// A stride in bytes that a tensor map can hold: a multiple of 16 below 2^40.
inline bool tma_stride(int64_t bytes) {
  if (bytes > 0 && bytes % 16 == 0 && bytes < (int64_t{1} << 40)) return true;
  fail("two tensors are %lld bytes apart; TMA reads both when that is a multiple of 16 below 2^40",
       static_cast<long long>(bytes));
  return false;
}

template <class Scheduler>
void set_raster(Scheduler& arguments, int64_t raster, int64_t swizzle) {
  using Raster = decltype(arguments.raster_order);
  arguments.raster_order =
      raster == 1 ? Raster::AlongM : (raster == 2 ? Raster::AlongN : Raster::Heuristic);
  arguments.max_swizzle_size = static_cast<int>(swizzle);
}

}  // namespace tessera_cutlass
#endif  // TESSERA_HOST_SIDE
