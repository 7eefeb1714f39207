// Which tiles of attention a block of threads takes, and in what order.
#pragma once

#include "tessera/sides.h"
#include "tessera_wgmma/attention_params.h"

#if TESSERA_DEVICE_SIDE
namespace tessera_wgmma {

/// Which keys a query sees, from the first to the end.
template <class C>
struct SeenKeys {
  static constexpr bool cut_behind = C::causal || C::band;

  static __device__ __forceinline__ int first(const AttentionParams& p, int query) {
    return C::band ? max(0, query + p.lower) : 0;
  }
  static __device__ __forceinline__ int end(const AttentionParams& p, int query) {
    return cut_behind ? min(p.columns, query + (C::band ? p.upper : 0) + 1) : p.columns;
  }
};

/// The tiles of one block of threads, in order.
template <class C>
struct AttentionTiles {
  const AttentionParams& p;
  int round = 0;

  // The tile that next() has found.
  int row_tile = 0, head = 0, batch = 0;
  int first_block = 0, blocks = 0;  // of keys that it sees: the first, the end

  __device__ __forceinline__ bool next() {
    const int pairs = p.heads * p.batch;
    const int grid = static_cast<int>(gridDim.x);
    const int block = static_cast<int>(blockIdx.x);
    // Forth and back: who had the longest of one round has the shortest of the next.
    const int n = round * grid + (round % 2 == 0 ? block : grid - 1 - block);
    ++round;
    if (n >= pairs * p.row_tiles) return false;
    const int whole = p.section * p.row_tiles;
    const int section = n / whole;
    const int first = section * p.section;
    const int here = min(p.section, pairs - first);
    const int rest = n - section * whole;
    const int pair = first + rest % here;
    // Every second section the shortest first, the last not: without jumps between sections the
    // shares stay even.
    const bool rising = ((pairs - 1) / p.section - section) % 2 != 0;
    row_tile = rising ? rest / here : p.row_tiles - 1 - rest / here;
    head = pair % p.heads;
    batch = pair / p.heads;
    blocks = (SeenKeys<C>::end(p, (row_tile + 1) * C::queries - 1) + C::keys - 1) / C::keys;
    // Of a last tile that reaches beyond the queries one block stays at least.
    if constexpr (C::band)
      first_block = min(SeenKeys<C>::first(p, row_tile * C::queries) / C::keys, blocks - 1);
    return true;
  }
};

}  // namespace tessera_wgmma
#endif
