// Proves on the host, by enumeration, that the gated epilogue (tessera_cutlass/gated.h) writes
// every element of D once, from the accumulators of the same element in both products. Follows
// CUTLASS' epilogue store step by step with numbers in the place of values. Exit 0 when it holds.
#include <cstdio>
#include <vector>

#include "tessera_cutlass/gated.h"

namespace {
using namespace cute;

int failures = 0;
void expect(bool ok, const char* what, int m, int n) {
  if (!ok && ++failures < 20) std::printf("  %s at (%d, %d)\n", what, m, n);
}

template <int BM, int BN, int WarpGroups>
using Mma = decltype(make_tiled_mma(
    GMMA::ss_op_selector<cutlass::bfloat16_t, cutlass::bfloat16_t, float,
                         Shape<Int<BM>, Int<BN>, _64>, GMMA::Major::K, GMMA::Major::K>(),
    Layout<Shape<Int<WarpGroups>, _1, _1>>{}));

/// The rows of the weights' view (n, 2) that a tile of `half` columns reads, in the tile's order.
template <int Half>
void check_rows() {
  const int n = 5 * Half;
  const auto rows = make_identity_tensor(make_shape(make_shape(n, 2), 64));
  const auto tiles = local_tile(rows, Shape<Shape<Int<Half>, _2>, _64>{}, make_coord(_, _));
  expect(int(size<2>(tiles)) == 5, "number of tiles", int(size<2>(tiles)), 5);
  for (int tile = 0; tile < 5; ++tile) {
    const auto coordinate = idx2crd(tile, shape<2>(tiles));  // as the kernel makes it
    const auto t = tiles(_, _, coordinate, 0);
    for (int r = 0; r < 2 * Half; ++r) {
      const auto at = get<0>(t(r, 0));
      expect(int(get<0>(at)) == tile * Half + r % Half && int(get<1>(at)) == r / Half,
             "row of the weights", tile, r);
    }
    expect(int(get<0>(coordinate)) == tile, "tile of D", tile, 0);
  }
  // A raster may count on beyond the last tile: D's tile must then be out of bounds, not the first.
  for (int tile = 0; tile < 9; ++tile) {
    const auto coordinate = make_coord(0, idx2crd(tile, shape<2>(tiles)), _, 0);
    const auto of_d = tessera::tile_of_one<Shape<_128, Int<Half>>>(
        coordinate, make_shape(128, make_shape(n, 2), 64, 1));
    expect(int(get<1>(of_d)) == tile, "tile of D, surplus ones as well", tile, 0);
  }
}

/// `FragmentSize`, copies and loops of CUTLASS' store, whose CopyAtomC is SM90_U32x4_STSM_N of
/// half.
template <int BM, int Half, int WarpGroups>
void check_tile() {
  std::printf("%d x %d (D %d x %d), %d warpgroups\n", BM, 2 * Half, BM, Half, WarpGroups);
  using Full = Mma<BM, 2 * Half, WarpGroups>;
  using Thin = Mma<BM, Half, WarpGroups>;
  using FullTile = Shape<Int<BM>, Shape<Int<Half>, _2>>;
  using HalfTile = Shape<Int<BM>, Int<Half>>;
  using Pairing = tessera::GatedPairing<Full, FullTile, Thin, HalfTile>;
  static_assert(Pairing::exact());
  using EpilogueTile = Shape<Int<WarpGroups * 64>, _32>;

  std::vector<int> written(BM * Half, 0);
  const auto everything = make_identity_tensor(Shape<Int<BM>, Int<2 * Half>>{});
  const auto outputs = make_identity_tensor(HalfTile{});
  for (int thread = 0; thread < WarpGroups * 128; ++thread) {
    const auto full = Full{}.get_slice(thread).partition_C(everything);
    auto pairs = make_tensor<tessera::AccumulatorPair>(partition_shape_C(Thin{}, HalfTile{}));
    const auto number = [&](int v) {  // of the position that accumulator v belongs to
      const auto at = full(v);
      return static_cast<float>(int(get<0>(at)) + BM * int(get<1>(at)));
    };
    for (int v = 0; v < Pairing::values; ++v) {
      pairs(v) = {number(Pairing::low()(v)), number(Pairing::low()(v) + Pairing::high_offset())};
    }
    const TiledCopy atom =
        make_tiled_copy_C_atom(Copy_Atom<SM90_U32x4_STSM_N, cutlass::half_t>{}, Thin{});
    const TiledCopy r2s =
        make_tiled_copy_S(Copy_Atom<SM90_U32x4_STSM_N, cutlass::bfloat16_t>{}, atom);
    const ThrCopy thread_r2s = r2s.get_slice(thread);
    const Tensor accumulators = thread_r2s.retile_S(pairs);
    const Tensor places = thread_r2s.partition_S(flat_divide(outputs, EpilogueTile{}));
    const int per_subtile = size<0>(places) * size<1>(places) * size<2>(places);
    constexpr int mma_n = Half / decltype(size<2>(accumulators))::value;
    for (int epi_n = 0; epi_n < size<4>(places); ++epi_n) {
      for (int epi_m = 0; epi_m < size<3>(places); ++epi_m) {
        const int first = epi_n % (mma_n / 32) * per_subtile;
        for (int i = 0; i < per_subtile; ++i) {
          const tessera::AccumulatorPair got = accumulators(first + i, epi_m, epi_n * 32 / mma_n);
          const auto at = places(_, _, _, epi_m, epi_n)(i);
          const int m = int(get<0>(at)), n = int(get<1>(at));
          expect(got.first == float(m + BM * n), "first product", m, n);
          expect(got.second == float(m + BM * (n + Half)), "second product", m, n);
          ++written[m + BM * n];
        }
      }
    }
  }
  for (int i = 0; i < BM * Half; ++i) expect(written[i] == 1, "times written", i % BM, i / BM);
}

}  // namespace

int main() {
  check_rows<32>();
  check_rows<96>();
  check_rows<128>();
  check_tile<128, 128, 2>();
  check_tile<128, 96, 2>();
  check_tile<128, 64, 2>();
  check_tile<256, 64, 2>();
  check_tile<64, 128, 1>();
  check_tile<64, 32, 1>();
  check_tile<128, 64, 1>();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
