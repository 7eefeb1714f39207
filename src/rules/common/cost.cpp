#include "rules/common/cost.h"

#include <algorithm>

namespace tessera::rules {

namespace {

/// Bytes that one covered op moves when PyTorch runs it. Copies that readers see through, and
/// reshapes that strides cannot express, move their elements all the same.
double bytes_moved(const Flow& flow, NodeId n) {
  const graph::Node& node = flow.g.node(n);
  if (node.prepack) return 0;
  const graph::TensorType& out = flow.g.value(node.outputs.at(0)).type;
  const auto name = base_name(node.op);
  if (flow.transparent(n)) {
    const bool copies = name == "aten.clone" || name == "aten.contiguous";
    const auto from = graph::resolve(flow.g, node.outputs[0]);
    return copies && from.strides != out.strides ? 2.0 * static_cast<double>(out.bytes()) : 0;
  }
  if (graph::kind_of(node) == graph::OpKind::view)
    return name == "aten.reshape" || name == "aten.flatten" ? 2.0 * static_cast<double>(out.bytes())
                                                            : 0;
  return static_cast<double>(graph::bytes_of(flow.g, node));
}

}  // namespace

double roofline_ms(const arch::Arch& arch, Precision precision, double flops, double bytes) {
  const double arithmetic = flops / (arch.peak_tflops(precision) * 1e12);
  const double rate = arch.bandwidth_of(bytes, arch.achievable_bandwidth_gbs);
  const double memory = bytes / (rate * 1e9);
  return std::max({arithmetic, memory, arch.launch_us * 1e-6}) * 1e3;
}

void estimate(const Flow& flow, const arch::Arch& arch, Pattern& p) {
  p.unfused_bytes = 0;
  p.unfused_ms = 0;
  for (NodeId n : p.nodes) {
    const double bytes = bytes_moved(flow, n);
    const double flops = flow.computes(n) ? graph::flops_of(flow.g, flow.g.node(n)) : 0;
    if (bytes == 0 && flops == 0) continue;  // a view: no kernel
    p.unfused_bytes += bytes;
    p.unfused_ms += roofline_ms(arch, p.precision, flops, bytes);
  }
  p.floor_ms = roofline_ms(arch, p.precision, p.flops, p.min_bytes);
  p.priority = std::max(0.0, p.unfused_ms - p.floor_ms);
}

}  // namespace tessera::rules
