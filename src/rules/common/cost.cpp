#include "rules/common/cost.h"

#include <algorithm>

namespace tessera::rules {

double roofline_ms(const arch::Arch& arch, Precision precision, double flops, double bytes) {
  const double arithmetic = flops / (arch.peak_tflops(precision) * 1e12);
  const double memory = bytes / (arch.achievable_bandwidth_gbs * 1e9);
  return std::max({arithmetic, memory, arch.launch_us * 1e-6}) * 1e3;
}

void estimate(const Flow& flow, const arch::Arch& arch, Pattern& p) {
  p.unfused_bytes = 0;
  p.unfused_ms = 0;
  for (NodeId n : p.nodes) {
    if (!flow.computes(n)) continue;
    const auto bytes = static_cast<double>(graph::bytes_of(flow.g, flow.g.node(n)));
    p.unfused_bytes += bytes;
    p.unfused_ms += roofline_ms(arch, p.precision, graph::flops_of(flow.g, flow.g.node(n)), bytes);
  }
  p.floor_ms = roofline_ms(arch, p.precision, p.flops, p.min_bytes);
  p.priority = std::max(0.0, p.unfused_ms - p.floor_ms);
}

}  // namespace tessera::rules
