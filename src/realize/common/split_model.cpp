#include "realize/common/split_model.h"

#include <cmath>

namespace tessera::realize {
namespace {

// Three tf32 products; 495 TFLOP/s of tf32 at the boost clock is 1024 multiply-adds a clock and SM.
constexpr double mma_per_clock = 1024.0 / 3;
constexpr double sustained_ghz = 1.55;
// The inline split costs its producers shared memory passes that the packed form does not have.
constexpr double inline_factor = 1.15;

}  // namespace

int64_t operand_elements(const GemmProblem& p) {
  return p.m * p.k * (p.a.batch ? p.l : 1) + p.n * p.k * (p.b.batch ? p.l : 1);
}

double predict_split_ms(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch) {
  const double tiles = std::ceil(static_cast<double>(p.m) / c.tile_m) *
                       std::ceil(static_cast<double>(p.n) / c.tile_n) * static_cast<double>(p.l);
  const double waves = std::ceil(tiles / arch.multiprocessors);
  double clocks =
      static_cast<double>(c.tile_m) * c.tile_n * static_cast<double>(p.k) / mma_per_clock;
  if (c.tile_n < 176) clocks *= 1.1;
  // Multicast halves the traffic of one operand; which one matters little.
  clocks *= c.cluster_m == 2 ? 1.0 : c.cluster_n == 2 ? 1.02 : 1.04;
  double ms = waves * (clocks + 3000) / (sustained_ghz * 1e6);
  if (c.mainloop == Mainloop::split_inline) return ms * inline_factor;
  // 12 bytes of traffic an element of A and B before the product.
  const auto elements = static_cast<double>(operand_elements(p));
  return ms + elements * 12 / (arch.achievable_bandwidth_gbs * 1e6) + 0.008;
}

}  // namespace tessera::realize
