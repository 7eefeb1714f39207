// The host side of a product kernel: tensor maps, the grid, the launch.
#pragma once

#include "tessera/kernel.h"
#include "tessera/limits.h"
#include "tessera/programmatic_launch.h"
#include "tessera/tensor_map.h"
#include "tessera_wgmma/params.h"

#if TESSERA_HOST_SIDE
#include "tessera/launch_error.h"

namespace tessera_wgmma {

using tessera_launch_error::check;
using tessera_launch_error::fail;
using tessera_launch_error::last_error;

/// Four integers of a launch: tensor, offset, leading stride, batch stride, in elements; and the
/// stride between runs of batches, where they have two.
struct Matrix {
  char* data;
  int64_t ld, batch;
  int64_t outer = 0;
};
/// Tensor -1 is the workspace.
inline Matrix matrix(const tessera_launch* launch, void* workspace, int first, int element_bytes) {
  const int64_t* const v = launch->ints + first;
  void* const data = v[0] < 0 ? workspace : launch->tensors[v[0]];
  return {static_cast<char*>(data) + v[1] * element_bytes, v[2], v[3]};
}
inline Matrix matrix(const tessera_launch* launch, int first, int element_bytes) {
  return matrix(launch, nullptr, first, element_bytes);
}

/// Vectors of so many bytes are read from it.
inline bool aligned(const void* pointer, int bytes) {
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(bytes) == 0) return true;
  fail("a tensor does not start at a multiple of %d bytes", bytes);
  return false;
}

/// A tensor [batches, outer, inner], or [runs, batches, outer, inner], and the box that is moved at
/// a time.
struct Boxes {
  CUtensorMapDataType type;
  int element_bytes;
  const void* data;
  int64_t inner, outer;
  int64_t ld;  // elements
  int box_inner, box_outer;
  CUtensorMapSwizzle swizzle;
  int dims = 3;
  int64_t batches = 1, runs = 1;
  int64_t batch = 0, run = 0;  // elements
};

/// Batches of `x`: so many, in runs of `inner` where it has two strides.
template <class C>
void set_batches(Boxes& t, const Matrix& x, int64_t batches, int64_t inner) {
  t.dims = C::two_strides ? 4 : 3;
  t.batches = x.batch == 0 ? 1 : C::two_strides ? inner : batches;
  t.batch = x.batch;
  if (!C::two_strides) return;
  t.runs = x.outer == 0 ? 1 : batches / inner;
  t.run = x.outer;
}

inline int encode(CUtensorMap& map, const Boxes& t) {
  const tessera::EncodeTiled function = tessera::tensor_map_encoder();
  if (function == nullptr) return fail("the driver has no cuTensorMapEncodeTiled");
  const cuuint64_t extents[4] = {static_cast<cuuint64_t>(t.inner), static_cast<cuuint64_t>(t.outer),
                                 static_cast<cuuint64_t>(t.batches),
                                 static_cast<cuuint64_t>(t.runs)};
  // A stride that is never stepped must still be legal.
  const int64_t batch = t.batches > 1 ? t.batch : t.ld, run = t.runs > 1 ? t.run : t.ld;
  const cuuint64_t strides[3] = {static_cast<cuuint64_t>(t.ld * t.element_bytes),
                                 static_cast<cuuint64_t>(batch * t.element_bytes),
                                 static_cast<cuuint64_t>(run * t.element_bytes)};
  const cuuint32_t box[4] = {static_cast<cuuint32_t>(t.box_inner),
                             static_cast<cuuint32_t>(t.box_outer), 1, 1};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  const CUresult status =
      function(&map, t.type, t.dims, const_cast<void*>(t.data), extents, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return 0;
  return fail(
      "cuTensorMapEncodeTiled (error %d): %lld x %lld x %lld elements of %d bytes at %p, "
      "strides %lld, %lld and %lld",
      static_cast<int>(status), static_cast<long long>(t.batches), static_cast<long long>(t.outer),
      static_cast<long long>(t.inner), t.element_bytes, t.data, static_cast<long long>(t.ld),
      static_cast<long long>(batch), static_cast<long long>(run));
}

/// The map of an operand of `rows` rows, loaded `tile` rows at a time, or half of them where two
/// blocks share it.
template <class C, bool KMajor>
int encode_operand(CUtensorMap& map, const Matrix& x, CUtensorMapDataType type, int64_t rows,
                   int64_t k, int64_t batches, int64_t inner, int tile, int sharers) {
  constexpr int bytes = Derived<C>::element_bytes;
  Boxes t{type, bytes, x.data, KMajor ? k : rows,         KMajor ? rows : k,
          x.ld, 0,     0,      CU_TENSOR_MAP_SWIZZLE_128B};
  set_batches<C>(t, x, batches, inner);
  const int share = sharers == 2 && (KMajor || !C::split) ? tile / 2 : tile;
  if (KMajor) {
    t.box_inner = C::depth, t.box_outer = share;
    if (C::split) t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
  } else {
    t.box_inner = C::split ? tile : 64, t.box_outer = C::depth;
    if (C::split) t.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  }
  return encode(map, t);
}

/// The map of a result, stored 64 x 32 at a time.
template <class C>
int encode_result(CUtensorMap& map, const Matrix& x, CUtensorMapDataType type, int element_bytes,
                  int64_t m, int64_t n, int64_t batches, int64_t inner) {
  Boxes t{type,
          element_bytes,
          x.data,
          n,
          m,
          x.ld,
          Derived<C>::store_columns,
          64,
          element_bytes == 4 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B};
  set_batches<C>(t, x, batches, inner);
  return encode(map, t);
}

/// Clusters of the kernel that a device runs at once.
template <class C>
struct Room {
  int clusters = 0;
};

template <class C>
int ask_room(const void* kernel, int device, Room<C>& room) {
  using D = Derived<C>;
  if (check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 D::shared_bytes),
            "cudaFuncSetAttribute(shared memory)")) {
    return -1;
  }
  if (D::cluster == 1) {
    return check(cudaDeviceGetAttribute(&room.clusters, cudaDevAttrMultiProcessorCount, device),
                 "cudaDeviceGetAttribute");
  }
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {D::cluster, 1, 1};
  config.gridDim = dim3(D::cluster);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = D::shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return check(cudaOccupancyMaxActiveClusters(&room.clusters, kernel, &config),
               "cudaOccupancyMaxActiveClusters");
}

/// Enqueues the kernel for `p`, which is complete.
template <class C, class Entry>
int enqueue(const Params<C>& p, Entry&& entry, cudaStream_t stream) {
  using D = Derived<C>;
  static tessera::PerDevice<Room<C>> rooms;
  const void* kernel = nullptr;
  int device = 0;
  if (check(tessera::find(entry, &kernel), "finding the kernel") ||
      check(cudaGetDevice(&device), "cudaGetDevice")) {
    return -1;
  }
  const Room<C>* const room =
      rooms.get(device, [&](Room<C>& r) { return ask_room<C>(kernel, device, r); });
  if (room == nullptr) return -1;
  const auto whole = [](int64_t extent, int64_t step) { return (extent + step - 1) / step; };
  const int64_t tiles =
      whole(p.m, C::rows * C::cluster_m) * whole(p.n, D::result_columns * C::cluster_n) * p.l;
  const int64_t most = tiles < room->clusters ? tiles : room->clusters;
  // As few as take no more turns: the last one has work for all, and tiles that share operands stay
  // beside each other.
  const int64_t clusters = most > 0 ? whole(tiles, whole(tiles, most)) : 0;
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(clusters * D::cluster));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = D::shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (D::cluster > 1) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {D::cluster, 1, 1};
    config.numAttrs = 1;
  }
  tessera::allow_early_start(config, attributes);
  void* arguments[] = {const_cast<Params<C>*>(&p)};
  return check(cudaLaunchKernelExC(&config, kernel, arguments), "cudaLaunchKernelExC");
}

}  // namespace tessera_wgmma
#endif  // TESSERA_HOST_SIDE
