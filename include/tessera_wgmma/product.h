// D[l,m,n] = epilogue(A[l,m,k] B[l,n,k]^T, ...) on Hopper: one warpgroup loads by TMA, two multiply
// by wgmma and store by TMA; blocks are persistent and are dealt tiles in bands.
//
// Plain CUDA C++, few templates: it builds in seconds. The generated source brings `Config`
// (params.h), `Mma`, the one wgmma instruction of its width, and `Epilogue`.
//
// A warpgroup's accumulators of 64 rows: register 4 j + 2 h + e of a thread is row
// 16 (warp of the warpgroup) + lane / 4 + 8 h, column 8 j + 2 (lane % 4) + e (PTX ISA, wgmma's D).
#pragma once

#include "tessera/programmatic_launch.h"
#include "tessera_wgmma/instructions.h"
#include "tessera_wgmma/params.h"
#include "tessera_wgmma/split_registers.h"
#include "tessera_wgmma/turn.h"

#if TESSERA_DEVICE_SIDE
#include "tessera_wgmma/store_box.h"

namespace tessera_wgmma {

enum NamedBarrier : int {
  everyone,
  first_turn,
  second_turn,
  first_stores,
  second_stores,
  splitters
};

/// The tiles of a problem in the order in which clusters are dealt them.
template <class C>
struct Tiles {
  int clusters_m, clusters_n, total;
  int along_n, band;

  __device__ explicit Tiles(const Params<C>& p)
      : clusters_m(whole(p.m, C::rows * C::cluster_m)),
        clusters_n(whole(p.n, Derived<C>::result_columns * C::cluster_n)),
        total(clusters_m * clusters_n * p.l),
        along_n(p.along_n),
        band(p.band) {}

  static __device__ int whole(int extent, int step) { return (extent + step - 1) / step; }

  /// First row, first column and batch of block `rank`'s tile in the cluster's i-th.
  __device__ void at(int i, int rank, int& row, int& column, int& batch) const {
    const int slice = clusters_m * clusters_n;
    batch = i / slice;
    int in = i - batch * slice;
    const int length = along_n ? clusters_n : clusters_m;  // of a band
    const int across = along_n ? clusters_m : clusters_n;
    const int first = in / (length * band) * band;
    const int width = min(band, across - first);
    in -= first * length;
    const int step = in / width;
    const int other = first + in - step * width;
    const int cluster_row = along_n ? other : step, cluster_column = along_n ? step : other;
    row = (cluster_row * C::cluster_m + (C::cluster_m > 1 ? rank : 0)) * C::rows;
    column = (cluster_column * C::cluster_n + (C::cluster_n > 1 ? rank : 0)) *
             Derived<C>::result_columns;
  }
};

/// Loads `Rows` x depth of an operand, or this block's half of it where two blocks share it: then
/// each sends its half to both.
template <class C, bool KMajor, int Rows, bool Shared>
__device__ __forceinline__ void load(uint32_t to, const CUtensorMap* map, uint32_t barrier, int k,
                                     int row, [[maybe_unused]] int run, int batch, int rank) {
  constexpr int bytes = Derived<C>::element_bytes;
  // K-major, and every layout of split operands, comes in one box.
  constexpr bool blocks = !KMajor && !C::split;
  constexpr int units = blocks ? Rows / 64 : Rows;
  constexpr int mine = Shared ? units / 2 : units;
  constexpr int unit_bytes = blocks ? C::depth * 128 : C::depth * bytes;
  static_assert(!Shared || (units % 2 == 0 && (KMajor || blocks)), "an operand that two can share");
  const int first = Shared ? rank * mine : 0;
  to += first * unit_bytes;
  const auto fetch = [&](uint32_t at, int x, int y) {
    if constexpr (Shared && C::two_strides) {
      tma_load_multicast(at, map, barrier, x, y, batch, run, 3);
    } else if constexpr (Shared) {
      tma_load_multicast(at, map, barrier, x, y, batch, 3);
    } else if constexpr (C::two_strides) {
      tma_load(at, map, barrier, x, y, batch, run);
    } else {
      tma_load(at, map, barrier, x, y, batch);
    }
  };
  if constexpr (blocks) {
#pragma unroll
    for (int i = 0; i < mine; ++i) fetch(to + i * unit_bytes, row + (first + i) * 64, k);
  } else if constexpr (KMajor) {
    fetch(to, k, row + first);
  } else {
    fetch(to, row + first, k);
  }
}

/// Whether the blocks of a cluster share an operand. Split operands that are not K-major lie
/// unswizzled in one piece, which halves would cut.
template <class C, bool KMajor, int Blocks>
constexpr bool shared = Blocks == 2 && (KMajor || !C::split);

/// The stages of a tile. Slices are equally long: what lies beyond K is loaded as zeros.
template <class C>
__device__ __forceinline__ int steps_of(const Params<C>& p) {
  return Tiles<C>::whole(p.k, C::sliced ? C::depth * p.l : C::depth);
}

/// One thread: fills the ring for all tiles of the block.
template <class C>
__device__ __forceinline__ void produce(const Params<C>& p, uint32_t memory, uint32_t full,
                                        uint32_t empty, int cluster, int clusters, int rank) {
  using D = Derived<C>;
  const Tiles<C> tiles(p);
  const int steps = steps_of(p);
  Turn<C::stages> turn;
  for (int i = cluster; i < tiles.total; i += clusters) {
    int row, column, batch;
    tiles.at(i, rank, row, column, batch);
    const int run = C::two_strides ? batch / p.inner : 0;
    if constexpr (C::two_strides) batch -= run * p.inner;
    int k = C::sliced ? batch * p.k_slice : 0;
    for (int step = 0; step < steps; ++step, turn.next(), k += C::sliced ? p.k_step : C::depth) {
      const uint32_t barrier = full + turn.stage * 8;
      const uint32_t a = memory + turn.stage * D::stage_bytes;
      mbarrier_wait(empty + turn.stage * 8, turn.parity ^ 1);
      mbarrier_arrive_expect_tx(barrier, D::stage_bytes);
      load<C, C::a_k_major, C::rows, shared<C, C::a_k_major, C::cluster_n>>(
          a, &p.a, barrier, k, row, run * p.a_runs, batch * p.a_batches, rank);
#pragma unroll
      for (int i = 0; i < C::products; ++i) {
        load<C, C::b_k_major, D::result_columns, shared<C, C::b_k_major, C::cluster_m>>(
            a + D::a_bytes + i * (D::b_bytes / C::products), &p.b[i], barrier, k, column,
            run * p.b_runs, batch * p.b_batches, rank);
      }
    }
  }
  // The next kernel's blocks find no room before this one's end anyway.
  tessera::allow_next();
  // The block stays until all have said that they are done with its stages: barriers must not go
  // while others of the cluster still arrive there.
  if constexpr (D::cluster > 1) {
    for (int i = 0; i < C::stages; ++i, turn.next())
      mbarrier_wait(empty + turn.stage * 8, turn.parity ^ 1);
  }
}

/// A warpgroup's place.
struct Group {
  int index;   // 0 or 1
  int thread;  // in the warpgroup
};

/// A stage may be filled again: told to every block that fills it.
template <class C>
__device__ __forceinline__ void release(uint32_t empty, int stage, Group group) {
  if constexpr (Derived<C>::cluster == 1) {
    if (group.thread == 0) mbarrier_arrive(empty + stage * 8);
  } else {
    if (group.thread % 32 == 0 && group.thread < 64)
      mbarrier_arrive_at(empty + stage * 8, group.thread / 32);
  }
}

/// The accumulators of `steps` stages of 16-bit or tf32 operands. All of them are released on
/// return.
template <class C, class Mma>
__device__ __forceinline__ void multiply(float (&acc)[Derived<C>::row_blocks][C::columns / 2],
                                         uint32_t memory, uint32_t full, uint32_t empty,
                                         Turn<C::stages>& turn, int steps, Group group) {
  using D = Derived<C>;
  // Bytes from one block of 64 rows to the next, and from the k of one wgmma to the next.
  constexpr uint32_t block = C::a_k_major ? 64 * 128 : C::depth * 128;
  constexpr uint32_t a_step = C::a_k_major ? 32 : 16 * 128;
  constexpr uint32_t b_step = C::b_k_major ? 32 : 16 * 128;
  constexpr uint32_t leading = C::depth * 128;  // between blocks of 64 of what is contiguous
  const uint32_t rows = C::pingpong ? 0 : group.index * D::row_blocks * block;
  int previous = 0;
  for (int step = 0; step < steps; ++step) {
    mbarrier_wait(full + turn.stage * 8, turn.parity);
    const uint32_t stage = memory + turn.stage * D::stage_bytes;
    const uint64_t a = descriptor(stage + rows, leading, 1024);
    const uint64_t b = descriptor(stage + D::a_bytes, leading, 1024);
#pragma unroll
    for (int i = 0; i < D::row_blocks; ++i) pin(acc[i]);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < C::depth / D::mma_depth; ++k) {
#pragma unroll
      for (int i = 0; i < D::row_blocks; ++i)
        Mma::issue(acc[i], a + ((i * block + k * a_step) >> 4), b + ((k * b_step) >> 4),
                   step + k != 0);
    }
    wgmma_commit();
    if (step > 0) {
      wgmma_wait<1>();
      release<C>(empty, previous, group);
    }
    previous = turn.stage;
    turn.next();
  }
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < D::row_blocks; ++i) pin(acc[i]);
  release<C>(empty, previous, group);
}

/// The results of one box, in registers, to shared memory and on their way to memory.
template <class C, class T, int Result>
__device__ __forceinline__ void store(const Params<C>& p, const float2 (&values)[4][2][C::results],
                                      uint32_t boxes, int& box, int row, int column, int batch,
                                      Group group) {
  using D = Derived<C>;
  const int barrier = group.index == 0 ? first_stores : second_stores;
  const uint32_t at = boxes + box * D::store_bytes;
  if (group.thread == 0) tma_store_wait_read<C::store_buffers - 1>();
  bar_sync(barrier, 128);
  const int lane = group.thread % 32, first = group.thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float2 v = values[j][h][Result];
      put<T>(at, first + 8 * h, 8 * j + 2 * (lane % 4), v.x, v.y);
    }
  }
  fence_proxy_async();
  bar_sync(barrier, 128);
  if (group.thread == 0) {
    if constexpr (C::two_strides) {
      tma_store(&p.d[Result], at, column, row, batch % p.inner, batch / p.inner);
    } else {
      tma_store(&p.d[Result], at, column, row, batch);
    }
    tma_store_commit();
  }
  box = box == C::store_buffers - 1 ? 0 : box + 1;
}

template <class C, class Epilogue, int Result>
__device__ __forceinline__ void store_all(const Params<C>& p,
                                          const float2 (&values)[4][2][C::results], uint32_t boxes,
                                          int& box, int row, int column, int batch, Group group) {
  if constexpr (Result < C::results) {
    store<C, typename Epilogue::template Type<Result>, Result>(p, values, boxes, box, row, column,
                                                               batch, group);
    store_all<C, Epilogue, Result + 1>(p, values, boxes, box, row, column, batch, group);
  }
}

/// Accumulators to results.
template <class C, class Epilogue>
__device__ __forceinline__ void finish(const Params<C>& p,
                                       const float (&acc)[Derived<C>::row_blocks][C::columns / 2],
                                       uint32_t boxes, int& box, int row, int column, int batch,
                                       Group group) {
  using D = Derived<C>;
  const int lane = group.thread % 32;
  const int first = group.thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < D::row_blocks; ++i) {
    const int block = row + i * 64;
    if (block >= p.m) return;  // the same for all threads of the warpgroup
    typename Epilogue::Row rows[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) rows[h] = Epilogue::row(p, batch, block + first + 8 * h);
#pragma unroll
    for (int chunk = 0; chunk < D::result_columns / D::store_columns; ++chunk) {
      const int left = column + chunk * D::store_columns;
      if (left >= p.n) break;
      typename Epilogue::Element elements[4][2];
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          elements[j][h] =
              Epilogue::element(p, batch, block + first + 8 * h, left + 8 * j + 2 * (lane % 4));
      float2 values[4][2][C::results];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const auto columns = Epilogue::column(p, batch, left + 8 * j + 2 * (lane % 4));
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float2 sums[C::products];
#pragma unroll
          for (int s = 0; s < C::products; ++s) {
            const int r = 4 * (s * (D::result_columns / 8) + chunk * 4 + j) + 2 * h;
            sums[s] = {acc[i][r], acc[i][r + 1]};
          }
          Epilogue::apply(sums, rows[h], columns, elements[j][h], values[j][h]);
        }
      }
      store_all<C, Epilogue, 0>(p, values, boxes, box, block, left, batch, group);
    }
  }
}

/// A consuming warpgroup.
template <class C, class Mma, class Epilogue>
__device__ __forceinline__ void consume(const Params<C>& p, uint8_t* generic, uint32_t memory,
                                        uint32_t full, uint32_t empty, int cluster, int clusters,
                                        int rank, Group group) {
  using D = Derived<C>;
  const Tiles<C> tiles(p);
  const int steps = steps_of(p);
  const uint32_t boxes = memory + D::store_offset + group.index * C::store_buffers * D::store_bytes;
  const int rows = C::pingpong ? 0 : group.index * D::group_rows;
  Turn<C::stages> turn;
  int box = 0;
  [[maybe_unused]] int buffer = 0;
  int first = cluster;
  if constexpr (C::pingpong) {
    // The second warpgroup lets the first begin, and has the second tile.
    if (group.index == 1) {
      bar_arrive(first_turn, 256);
      first += clusters;
      turn.skip(steps);
    }
  }
  for (int i = first; i < tiles.total; i += C::pingpong ? 2 * clusters : clusters) {
    int row, column, batch;
    tiles.at(i, rank, row, column, batch);
    float acc[D::row_blocks][C::columns / 2];
    if constexpr (C::pingpong) bar_sync(group.index == 0 ? first_turn : second_turn, 256);
    if constexpr (C::split) {
      multiply_from_registers<C, Mma>(acc, memory, generic, full, turn, buffer, steps, group.index,
                                      group.thread, splitters,
                                      [&](int stage) { release<C>(empty, stage, group); });
    } else {
      multiply<C, Mma>(acc, memory, full, empty, turn, steps, group);
    }
    if constexpr (C::pingpong) {
      bar_arrive(group.index == 0 ? second_turn : first_turn, 256);
      turn.skip(steps);
    }
    if constexpr (C::parts > 0) Epilogue::apply_parts(p, acc, row + rows, column, group.thread);
    finish<C, Epilogue>(p, acc, boxes, box, row + rows, column, batch, group);
  }
  if (group.thread == 0) tma_store_wait_read<0>();
}

/// The kernel.
template <class C, class Mma, class Epilogue>
__device__ __forceinline__ void product(const Params<C>& p) {
  using D = Derived<C>;
  extern __shared__ __align__(1024) uint8_t generic[];
  const uint32_t memory = shared_address(generic);
  const uint32_t full = memory + D::barrier_offset, empty = full + C::stages * 8;
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    prefetch_tensor_map(&p.a);
    for (int i = 0; i < C::products; ++i) prefetch_tensor_map(&p.b[i]);
    for (int i = 0; i < C::stages; ++i) {
      mbarrier_init(full + i * 8, 1);
      mbarrier_init(empty + i * 8, (C::pingpong ? 1 : 2) * D::cluster);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if constexpr (D::cluster > 1) cluster_sync();
  tessera::wait_for_previous();
  const int rank = D::cluster > 1 ? cluster_rank() : 0;
  const int cluster = blockIdx.x / D::cluster, clusters = gridDim.x / D::cluster;
  if (warpgroup == 0) {
    release_registers<40>();
    if (threadIdx.x == 0) {
      produce<C>(p, memory, full, empty, cluster, clusters, rank);
    }
  } else {
    claim_registers<232>();
    const Group group{warpgroup - 1, static_cast<int>(threadIdx.x % 128)};
    consume<C, Mma, Epilogue>(p, generic, memory, full, empty, cluster, clusters, rank, group);
  }
}

}  // namespace tessera_wgmma
#endif  // TESSERA_DEVICE_SIDE
