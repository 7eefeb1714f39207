// Launches the attention kernel of attention.h on tensors of any strides that TMA can follow.
#pragma once

#include <cstring>

#include "tessera/limits.h"
#include "tessera_cutlass/abi.hpp"
#include "tessera_cutlass/attention.h"

#if TESSERA_HOST_SIDE
namespace tessera_cutlass {

/// The integers of a launch, in order; views of [batch, heads, rows, columns] with adjoining
/// columns, strides and offsets in elements.
struct AttentionInts {
  struct View {
    int64_t tensor, offset, batch_stride, head_stride, row_stride;
  };
  View q, k, v, o;
  int64_t batch, heads, kv_heads, queries, keys, head_dim, value_dim;
  int64_t scale;    // the bits of a float: of the scores, positive
  int64_t section;  // (batch, head) pairs that are worked on at once
};

template <class Kernel>
struct AttentionLaunch {
  using Element = typename Kernel::Element;
  const tessera_launch* launch;
  const AttentionInts& n;

  Element* data(const AttentionInts::View& v) const {
    return static_cast<Element*>(launch->tensors[v.tensor]) + v.offset;
  }

  static bool readable(const AttentionInts::View& v) {
    for (const int64_t stride : {v.batch_stride, v.head_stride, v.row_stride}) {
      const int64_t bytes = stride * static_cast<int64_t>(sizeof(Element));
      if (bytes > 0 && bytes % 16 == 0 && bytes < (int64_t{1} << 40)) continue;
      fail("a stride is %lld bytes; TMA follows multiples of 16 below 2^40",
           static_cast<long long>(bytes));
      return false;
    }
    return true;
  }

  /// [rows, columns, heads, batch], or its first two exchanged.
  template <class Tma, class Copy, class Layout>
  Tma rows(const AttentionInts::View& v, const typename Kernel::Extents& extents) const {
    return cute::make_tma_copy(
        Copy{},
        cute::make_tensor(cute::make_gmem_ptr(data(v)), extents,
                          typename Kernel::Rows{v.row_stride, {}, v.head_stride, v.batch_stride}),
        cute::take<0, 2>(Layout{}));
  }

  bool parameters(typename Kernel::Params& p) const {
    for (const auto* v : {&n.q, &n.k, &n.v, &n.o}) {
      if (!aligned16({data(*v)}) || !readable(*v)) return false;
    }
    if (n.head_dim > Kernel::Depth || n.value_dim > Kernel::Width || n.kv_heads < 1 ||
        n.heads % n.kv_heads != 0 || n.section < 1) {
      fail("head dims %lld and %lld, %lld heads over %lld; built for dims up to %d and %d",
           static_cast<long long>(n.head_dim), static_cast<long long>(n.value_dim),
           static_cast<long long>(n.heads), static_cast<long long>(n.kv_heads), Kernel::Depth,
           Kernel::Width);
      return false;
    }
    const auto i = [](int64_t x) { return static_cast<int32_t>(x); };
    p.of_q = {i(n.queries), i(n.head_dim), i(n.heads), i(n.batch)};
    p.of_k = {i(n.keys), i(n.head_dim), i(n.kv_heads), i(n.batch)};
    p.of_v = {i(n.value_dim), i(n.keys), i(n.kv_heads), i(n.batch)};
    p.of_o = {i(n.queries), i(n.value_dim), i(n.heads), i(n.batch)};
    using Load = cute::SM90_TMA_LOAD;
    p.q = rows<typename Kernel::TmaQ, Load, typename Kernel::LayoutQ>(n.q, p.of_q);
    p.k = rows<typename Kernel::TmaK, Load, typename Kernel::LayoutK>(n.k, p.of_k);
    p.v = cute::make_tma_copy(
        Load{},
        cute::make_tensor(
            cute::make_gmem_ptr(data(n.v)), p.of_v,
            typename Kernel::Columns{{}, n.v.row_stride, n.v.head_stride, n.v.batch_stride}),
        cute::take<0, 2>(typename Kernel::LayoutV{}));
    p.o = rows<typename Kernel::TmaO, cute::SM90_TMA_STORE, typename Kernel::LayoutO>(n.o, p.of_o);
    p.rows = i(n.queries);
    p.columns = i(n.keys);
    p.row_tiles = (p.rows + Kernel::Queries - 1) / Kernel::Queries;
    p.heads = i(n.heads);
    p.kv_heads = i(n.kv_heads);
    p.batch = i(n.batch);
    p.section = i(n.section);
    std::memcpy(&p.scale, &n.scale, sizeof(float));  // its low half, on a little-endian host
    p.scale *= 1.44269504F;
    return true;
  }
};

/// `entry`: what TESSERA_ENTRY gives for the kernel that runs `Kernel`.
template <class Kernel, class Entry>
int run_attention(const tessera_launch* launch, Entry&& entry, cudaStream_t stream) {
  static_assert(sizeof(AttentionInts) % sizeof(int64_t) == 0);
  constexpr int ints = sizeof(AttentionInts) / sizeof(int64_t);
  if (launch->int_count != ints) return fail("%d integers, not %d", launch->int_count, ints);
  const auto& n = *reinterpret_cast<const AttentionInts*>(launch->ints);
  typename Kernel::Params params;
  if (!AttentionLaunch<Kernel>{launch, n}.parameters(params)) return -1;
  static tessera::PerDevice<bool> raised;
  if (check(tessera::allow_shared_memory(raised, entry, sizeof(typename Kernel::Shared)),
            "cudaFuncSetAttribute(shared memory)")) {
    return -1;
  }
  const int blocks = tessera::multiprocessors();
  const int64_t tiles = int64_t{params.row_tiles} * n.heads * n.batch;
  constexpr int64_t most = int64_t{1} << 30;  // a round of blocks beyond it is counted in 32 bits
  if (tiles > most) return fail("%lld tiles of queries, above 2^30", static_cast<long long>(tiles));
  return check(tessera::launch(entry, static_cast<unsigned>(tiles < blocks ? tiles : blocks),
                               Kernel::Threads, sizeof(typename Kernel::Shared), stream, params),
               "cudaLaunchKernelEx");
}

}  // namespace tessera_cutlass
#endif  // TESSERA_HOST_SIDE
