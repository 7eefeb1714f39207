// Which tiles of attention a block of threads takes, and in what order.
#pragma once

#include "tessera/sides.h"
#include "tessera_wgmma/attention_params.h"

#if TESSERA_DEVICE_SIDE
namespace tessera_wgmma {

/// The tiles of one block of threads, in order.
template <class C>
struct AttentionTiles {
  const AttentionParams& p;
  int round = 0;

  // The tile that next() has found.
  int row_tile = 0, head = 0, batch = 0;
  int blocks = 0;  // of keys that it sees

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
    const int seen = C::causal ? min(p.columns, (row_tile + 1) * C::queries) : p.columns;
    blocks = (seen + C::keys - 1) / C::keys;
    return true;
  }
};

}  // namespace tessera_wgmma
#endif
