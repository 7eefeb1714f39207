#include "pipeline/best_plan.h"

#include <algorithm>

#include "graph/ops.h"
#include "rules/common/cost.h"

namespace tessera::pipeline {
namespace {

bool is_of(const graph::Graph& g, graph::NodeId n, std::initializer_list<graph::OpKind> kinds) {
  const graph::OpRecord* op = graph::find_op(g.node(n).op);
  return op != nullptr && std::find(kinds.begin(), kinds.end(), op->kind) != kinds.end();
}

}  // namespace

bool is_of_products(const graph::Graph& g, const rules::Pattern& p) {
  return std::any_of(p.computing.begin(), p.computing.end(), [&](graph::NodeId n) {
    return is_of(g, n, {graph::OpKind::matmul, graph::OpKind::attention});
  });
}

double fused_share(const graph::Graph& g, const arch::Arch& arch, double eager_ms, double best_ms) {
  if (best_ms >= eager_ms) return 1;
  double libraries = 0;
  for (const graph::NodeId n : g.order) {
    if (!is_of(g, n, {graph::OpKind::matmul, graph::OpKind::attention, graph::OpKind::convolution}))
      continue;
    libraries += rules::roofline_ms(arch, g.precision, graph::flops_of(g, g.node(n)),
                                    static_cast<double>(graph::bytes_of(g, g.node(n))));
  }
  constexpr double most = 0.9;  // of the best plan: a roofline is an estimate too
  constexpr double least_share = 0.1;
  libraries = std::min(libraries, most * best_ms);
  return std::clamp((best_ms - libraries) / (eager_ms - libraries), least_share, 1.0);
}

double gain_over_plan(double gain_ms, double from_ms, double price_ms) {
  constexpr double least = 0.05;
  return std::max(least * gain_ms, std::min(from_ms, price_ms) - (from_ms - gain_ms));
}

}  // namespace tessera::pipeline
