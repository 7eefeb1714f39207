#include "realize/common/split_model.h"

#include <algorithm>
#include <cmath>

namespace tessera::realize {
namespace {

// Three tf32 products; 495 TFLOP/s of tf32 at the boost clock is 1024 multiply-adds a clock and SM.
constexpr double mma_per_clock = 1024.0 / 3;
constexpr double sustained_ghz = 1.55;
// The inline split costs its producers shared memory passes that the packed form does not have.
constexpr double inline_factor = 1.15;

/// Of 16 k, where A's parts stay in registers: the tensor core's clocks, or those of shared memory
/// at 128 bytes a clock. It takes and gives both raw operands (64 bytes a row or column), takes B's
/// packed parts (128 a column), and gives them to the three products of every 64 rows (192 each).
/// Fitted to an H200, within 8 %, at five tiles: what is not hidden, and the fragments of tall
/// tiles. Where warps of their own split B, at 4096^3 and two tiles; for other problems it was 7 %
/// too fast to 9 % too slow for 128 columns, and 19 % too slow for 96 (bench/results/tile_fp32).
double registers_clocks(const Sm90Config& c) {
  const double m = c.tile_m, n = c.tile_n;
  const double shared = (128 * m + 128 * n + 128 * n + 192 * n * m / 64) / 128;
  const double bound = std::max(m * n * 16 / mma_per_clock, shared);
  // Where warps of their own split B, those that multiply wait for less.
  if (c.mainloop == Mainloop::split_divided) return 0.69 * bound + 175;
  const double step = 1.09 * bound + 64;
  return c.tile_m > 128 ? 1.06 * step : step;
}

}  // namespace

int64_t operand_elements(const GemmProblem& p) {
  return p.m * p.k * (p.a.batch ? p.l : 1) + p.n * p.k * (p.b.batch ? p.l : 1);
}

double predict_split_ms(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch) {
  const double tiles = std::ceil(static_cast<double>(p.m) / c.tile_m) *
                       std::ceil(static_cast<double>(p.n) / c.tile_n) * static_cast<double>(p.l);
  const double waves = std::ceil(tiles / arch.multiprocessors);
  // Multicast halves the traffic of one operand; which one matters little.
  const double multicast = c.cluster_m == 2 ? 1.0 : c.cluster_n == 2 ? 1.02 : 1.04;
  if (c.mainloop == Mainloop::split_registers || c.mainloop == Mainloop::split_divided) {
    const double clocks = static_cast<double>(p.k) / 16 * registers_clocks(c) * multicast;
    return waves * (clocks + 6000) / (sustained_ghz * 1e6);
  }
  double clocks =
      static_cast<double>(c.tile_m) * c.tile_n * static_cast<double>(p.k) / mma_per_clock;
  if (c.tile_n < 176) clocks *= 1.1;
  const double ms = waves * (clocks * multicast + 3000) / (sustained_ghz * 1e6);
  if (c.mainloop == Mainloop::split_inline) return ms * inline_factor;
  // 12 bytes of traffic an element of A and B before the product.
  const auto elements = static_cast<double>(operand_elements(p));
  return ms + elements * 12 / (arch.achievable_bandwidth_gbs * 1e6) + 0.008;
}

}  // namespace tessera::realize
