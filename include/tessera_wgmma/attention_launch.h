// The host side of an attention kernel: tensor maps of any strides that TMA can follow, the grid,
// the launch.
#pragma once

#include <cstring>
#include <initializer_list>

#include "tessera_wgmma/attention_params.h"
#include "tessera_wgmma/launch.h"

#if TESSERA_HOST_SIDE
namespace tessera_wgmma {

/// The integers of a launch, in order; views of [batch, heads, rows, columns] with adjoining
/// columns, strides and offsets in elements of 16 bits.
struct AttentionInts {
  struct View {
    int64_t tensor, offset, batch_stride, head_stride, row_stride;
  };
  View q, k, v, o;
  int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  int64_t scale;         // the bits of a float: of the scores, positive
  int64_t softcap;       // the bits of a float: above 0 where scores are capped
  int64_t lower, upper;  // of a band, within 2^30
  int64_t section;       // (batch, head) pairs that are worked on at once
};

/// A map that moves one block of a matrix at a time.
template <class C, class Matrix>
int encode_view(CUtensorMap& map, const tessera_launch* launch, const AttentionInts::View& view,
                int64_t columns, int64_t rows, int64_t heads, int64_t batch) {
  const tessera::EncodeTiled function = tessera::tensor_map_encoder();
  if (function == nullptr) return fail("the driver has no cuTensorMapEncodeTiled");
  char* const data = static_cast<char*>(launch->tensors[view.tensor]) + 2 * view.offset;
  if (!aligned(data, 16)) return -1;
  cuuint64_t strides[3] = {};
  int d = 0;
  for (const int64_t stride : {view.row_stride, view.head_stride, view.batch_stride}) {
    if (stride <= 0 || stride % 8 != 0 || stride >= (int64_t{1} << 39)) {
      return fail("a stride is %lld bytes; TMA follows multiples of 16 below 2^40",
                  2 * static_cast<long long>(stride));
    }
    strides[d++] = 2 * static_cast<cuuint64_t>(stride);
  }
  const cuuint64_t extents[4] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows),
                                 static_cast<cuuint64_t>(heads), static_cast<cuuint64_t>(batch)};
  const cuuint32_t box[4] = {Matrix::columns, Matrix::rows, 1, 1};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  constexpr CUtensorMapDataType type =
      C::bfloat16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  constexpr CUtensorMapSwizzle swizzle = Matrix::row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                         : Matrix::row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                                   : CU_TENSOR_MAP_SWIZZLE_32B;
  const CUresult status =
      function(&map, type, 4, data, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return 0;
  return fail(
      "cuTensorMapEncodeTiled (error %d): %lld x %lld x %lld x %lld elements at %p, strides %lld, "
      "%lld and %lld bytes",
      static_cast<int>(status), static_cast<long long>(batch), static_cast<long long>(heads),
      static_cast<long long>(rows), static_cast<long long>(columns), static_cast<void*>(data),
      static_cast<long long>(strides[2]), static_cast<long long>(strides[1]),
      static_cast<long long>(strides[0]));
}

template <class C>
int fill_params(AttentionParams& p, const tessera_launch* launch, const AttentionInts& n) {
  using Shape = AttentionShape<C>;
  if (n.head_dim > C::depth || n.value_dim > C::width || n.kv_heads < 1 ||
      n.heads % n.kv_heads != 0 || n.section < 1) {
    return fail("head dims %lld and %lld, %lld heads over %lld; built for dims up to %d and %d",
                static_cast<long long>(n.head_dim), static_cast<long long>(n.value_dim),
                static_cast<long long>(n.heads), static_cast<long long>(n.kv_heads), C::depth,
                C::width);
  }
  if (encode_view<C, typename Shape::Q>(p.q, launch, n.q, n.head_dim, n.queries, n.heads,
                                        n.batch) ||
      encode_view<C, typename Shape::K>(p.k, launch, n.k, n.head_dim, n.keys, n.kv_heads,
                                        n.batch) ||
      encode_view<C, typename Shape::V>(p.v, launch, n.v, n.value_dim, n.keys, n.kv_heads,
                                        n.batch) ||
      encode_view<C, typename Shape::O>(p.o, launch, n.o, n.value_dim, n.queries, n.heads,
                                        n.batch)) {
    return -1;
  }
  p.rows = static_cast<int>(n.queries);
  p.columns = static_cast<int>(n.keys);
  p.row_tiles = (p.rows + C::queries - 1) / C::queries;
  p.heads = static_cast<int>(n.heads);
  p.kv_heads = static_cast<int>(n.kv_heads);
  p.batch = static_cast<int>(n.batch);
  p.section = static_cast<int>(n.section);
  p.lower = static_cast<int>(n.lower);
  p.upper = static_cast<int>(n.upper);
  std::memcpy(&p.scale, &n.scale, sizeof(float));  // its low half, on a little-endian host
  if constexpr (C::capped) {
    float cap;
    std::memcpy(&cap, &n.softcap, sizeof(float));
    if (!(cap > 0))
      return fail("scores are capped at %g, which is not above 0", static_cast<double>(cap));
    p.cap_scale = p.scale / cap;
    p.scale = cap;
  }
  p.scale *= 1.44269504F;
  return 0;
}

/// `entry`: what TESSERA_ENTRY gives for the kernel of `C`.
template <class C, class Entry>
int run_attention(const tessera_launch* launch, Entry&& entry, cudaStream_t stream) {
  using Shape = AttentionShape<C>;
  static_assert(sizeof(AttentionInts) % sizeof(int64_t) == 0, "integers only");
  constexpr int ints = sizeof(AttentionInts) / sizeof(int64_t);
  if (launch->int_count != ints)
    return fail("expected %d integers, got %d", ints, launch->int_count);
  const auto& n = *reinterpret_cast<const AttentionInts*>(launch->ints);
  AttentionParams params{};
  if (fill_params<C>(params, launch, n)) return -1;
  static tessera::PerDevice<bool> raised;
  if (check(tessera::allow_shared_memory(raised, entry, Shape::shared_bytes),
            "cudaFuncSetAttribute(shared memory)")) {
    return -1;
  }
  const int64_t blocks = tessera::multiprocessors();
  const int64_t tiles = int64_t{params.row_tiles} * n.heads * n.batch;
  constexpr int64_t most = int64_t{1} << 30;  // a round of blocks beyond it is counted in 32 bits
  if (tiles > most) return fail("%lld tiles of queries, above 2^30", static_cast<long long>(tiles));
  return check(tessera::launch(entry, static_cast<unsigned>(tiles < blocks ? tiles : blocks),
                               Shape::threads, Shape::shared_bytes, stream, params),
               "cudaLaunchKernelExC");
}

}  // namespace tessera_wgmma
#endif  // TESSERA_HOST_SIDE
