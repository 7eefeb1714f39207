// Proves on the host, by enumeration, what tessera_cutlass/row_order.h says: a
// lane's two rows are neighbours and are those of its accumulators, every row of the tile has its
// lanes, and the 16 lanes that one shared memory access serves touch every bank once. Exit 0 when
// it holds.
#include <cstdio>
#include <set>
#include <vector>

#include "cute/atom/mma_atom.hpp"
#include "cute/atom/mma_traits_sm90_gmma.hpp"
#include "cutlass/numeric_types.h"
#include "tessera_cutlass/row_order.h"

namespace {
using namespace cute;

int failures = 0;
void expect(bool ok, const char* what, int thread, int value) {
  if (!ok && ++failures < 20) std::printf("  %s: thread %d, value %d\n", what, thread, value);
}

template <int BM, int BN, int WarpGroups, class Atom>
void check() {
  constexpr int block_k = 32;
  using Order = tessera::RowOrder<WarpGroups>;
  using Mma = TiledMMA<MMA_Atom<Atom>, Layout<Shape<Int<WarpGroups>, _1, _1>>,
                       Tile<Order, Underscore, Underscore>>;
  const auto shared = tile_to_shape(GMMA::Layout_MN_SW128_Atom<cutlass::tfloat32_t>{},
                                    Shape<Int<BM>, Int<block_k>>{});
  const auto address = [&](int m, int k) {  // in bytes, of the tile's start
    return Swizzle<3, 4, 3>::apply(static_cast<int>(shared.layout_b()(m, k)) * 4);
  };
  std::vector<int> reads(BM * block_k, 0);
  for (int warp = 0; warp < WarpGroups * 4; ++warp) {
    std::vector<decltype(Mma{}.get_slice(0).partition_A(
        make_identity_tensor(Shape<Int<BM>, Int<block_k>>{})))>
        lanes;
    for (int lane = 0; lane < 32; ++lane) {
      const int thread = warp * 32 + lane;
      const auto slice = Mma{}.get_slice(thread);
      const auto a = slice.partition_A(make_identity_tensor(Shape<Int<BM>, Int<block_k>>{}));
      const auto c = slice.partition_C(make_identity_tensor(Shape<Int<BM>, Int<BN>>{}));
      std::set<int> rows_a, rows_c;
      for (int v = 0; v < size(a); ++v) {
        rows_a.insert(get<0>(a(v)));
        ++reads[get<0>(a(v)) * block_k + get<1>(a(v))];
      }
      for (int v = 0; v < size(c); ++v) rows_c.insert(get<0>(c(v)));
      expect(rows_a == rows_c, "rows of A are not the accumulators'", thread, 0);
      for (int v = 0; v < size(a); v += 2) {
        expect(get<0>(a(v)) % 2 == 0 && get<0>(a(v + 1)) == get<0>(a(v)) + 1 &&
                   get<1>(a(v + 1)) == get<1>(a(v)),
               "not two neighbouring rows at one k", thread, v);
      }
      lanes.push_back(a);
    }
    for (int v = 0; v < size(lanes[0]); v += 2) {
      for (int half = 0; half < 2; ++half) {
        std::set<int> banks;
        for (int lane = 16 * half; lane < 16 * half + 16; ++lane) {
          const auto at = lanes[lane](v), next = lanes[lane](v + 1);
          const int first = address(get<0>(at), get<1>(at));
          expect(first % 8 == 0 && address(get<0>(next), get<1>(next)) == first + 4,
                 "not one 8-byte load", warp * 32 + lane, v);
          banks.insert(first / 4 % 32);
          banks.insert(first / 4 % 32 + 1);
        }
        expect(banks.size() == 32, "bank conflict", warp * 32 + 16 * half, v);
      }
    }
  }
  for (int i = 0; i < BM * block_k; ++i) expect(reads[i] == 1, "times read", i / block_k, i % 32);
}

}  // namespace

int main() {
  check<64, 256, 1, SM90::GMMA::MMA_64x256x8_F32TF32TF32_RS_TN<>>();
  check<128, 128, 1, SM90::GMMA::MMA_64x128x8_F32TF32TF32_RS_TN<>>();
  check<128, 256, 2, SM90::GMMA::MMA_64x256x8_F32TF32TF32_RS_TN<>>();
  check<256, 96, 2, SM90::GMMA::MMA_64x96x8_F32TF32TF32_RS_TN<>>();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
