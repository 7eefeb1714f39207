// Proves on the host, by enumeration, that the parts of an epilogue (tessera_cutlass/turned.h)
// change every accumulator of a tile once, with its own partner and operands. Exit 0 when it holds.
#include <cstdio>
#include <vector>

#include "tessera_cutlass/turned.h"

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

constexpr int positions = 50;  // rows of the table, which repeats
constexpr int group_of_tile = 3;
constexpr int column_of_tile = 1000;  // within a part without a period

/// Each value becomes a number that says what it was made of.
template <int Period>
struct Part {
  static constexpr int period = Period;
  tessera::PartOperand<float, tessera::Columns::pairs, true> table;      // [positions, columns]
  tessera::PartOperand<float, tessera::Columns::elements, false> bias;   // [groups, columns]
  tessera::PartOperand<float, tessera::Columns::one, false> row_factor;  // [rows]
  struct Shared {
    cutlass::AlignedArray<float, 2> table, factor;
  };
  struct Own {
    cutlass::AlignedArray<float, 2> bias;
  };
  CUTLASS_HOST_DEVICE Shared shared(int row, int column) const {
    return {table.two(row, 0, column), row_factor.two(row, 0, column)};
  }
  CUTLASS_HOST_DEVICE Own own(int row, int group, int column) const {
    return {bias.two(row, group, column)};
  }
  template <class... Floats>
  CUTLASS_HOST_DEVICE static void apply(Shared const& s, Own const& o, int i, Floats&... values) {
    const double sum = (static_cast<double>(values) + ...);
    ((values = static_cast<float>(sum + s.table[i] + o.bias[i] + s.factor[i])), ...);
  }
};

/// `rows`: of the whole result; the tile is its first.
template <int BM, int BN, int WarpGroups, int Period>
void check_tile(int rows) {
  using TiledMma = Mma<BM, BN, WarpGroups>;
  using Tile = Shape<Int<BM>, Int<BN>>;
  using Fragment = tessera::PartFragment<TiledMma, Tile, Part<Period>>;
  constexpr int width = Period == 0 ? column_of_tile + BN : Period / 2;
  const int groups = group_of_tile + (Period == 0 ? 1 : BN / Period);
  std::vector<float> table(positions * width), bias(groups * width), factor(rows);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 977);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 1013) * 1024;
  for (std::size_t i = 0; i < factor.size(); ++i) factor[i] = static_cast<float>(i) / 1024;
  const Part<Period> part{{table.data(), width, 0, positions},
                          {bias.data(), 0, width, static_cast<uint32_t>(rows)},
                          {factor.data(), 1, 0, static_cast<uint32_t>(rows)}};
  const auto accumulator = [](int m, int n) { return static_cast<float>((m * 131 + n * 7) % 509); };
  std::vector<int> changed(BM * BN, 0);
  for (int thread = 0; thread < WarpGroups * 128; ++thread) {
    const auto places = TiledMma{}.get_slice(thread).partition_C(make_identity_tensor(Tile{}));
    auto values = make_tensor<float>(partition_shape_C(TiledMma{}, Tile{}));
    for (int v = 0; v < size(values); ++v)
      values(v) = accumulator(get<0>(places(v)), get<1>(places(v)));
    const int row = get<0>(places(0));
    const int column = get<1>(places(0)) + (Period == 0 ? column_of_tile : 0);
    tessera::apply_part<Fragment>(part, values, row, rows - 1, Period == 0 ? 0 : group_of_tile,
                                  column);
    for (int v = 0; v < size(values); ++v) {
      const int m = get<0>(places(v)), n = get<1>(places(v));
      ++changed[m * BN + n];
      const int at = m < rows ? m : rows - 1;
      const int group = Period == 0 ? 0 : group_of_tile + n / Fragment::period;
      const int c = Period == 0 ? column_of_tile + n : n % Fragment::half;
      const int low = n / Fragment::period * Fragment::period + n % Fragment::half;
      double want = accumulator(m, low);
      if (Period != 0) want += accumulator(m, low + Fragment::half);
      for (const float x : {table[at % positions * width + c], bias[group * width + c], factor[at]})
        want += x;
      expect(values(v) == static_cast<float>(want), "value", m, n);
    }
  }
  for (int i = 0; i < BM * BN; ++i) expect(changed[i] == 1, "times changed", i / BN, i % BN);
}

}  // namespace

int main() {
  check_tile<128, 256, 2, 128>(128);
  check_tile<128, 256, 2, 64>(77);
  check_tile<256, 128, 2, 128>(256);
  check_tile<128, 192, 2, 64>(128);
  check_tile<64, 128, 1, 128>(33);
  check_tile<128, 64, 1, 64>(128);
  check_tile<64, 64, 1, 16>(64);
  check_tile<64, 160, 1, 80>(64);
  check_tile<128, 96, 2, 0>(101);
  check_tile<64, 256, 1, 0>(64);
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
