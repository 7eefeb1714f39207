// What PyTorch's best plan pays for a pattern's ops, where that is less than they take one by one.
#pragma once

#include "arch/arch.h"
#include "graph/graph.h"
#include "rules/rules.h"

namespace tessera::pipeline {

/// Whether a pattern covers a product or attention, which Inductor leaves to libraries. What it
/// generates itself, it fuses across patterns.
bool is_of_products(const graph::Graph& g, const rules::Pattern& p);

/// Of what an op that Inductor fuses takes by itself, the share that it takes in a module that
/// takes `eager_ms` op by op and `best_ms` by PyTorch's best plan: libraries' ops (products,
/// attention, convolutions) take their roofline in both, the rest what is left. 1 where fusing
/// gains nothing.
double fused_share(const graph::Graph& g, const arch::Arch& arch, double eager_ms, double best_ms);

/// The part of `gain_ms` that is a gain over PyTorch's best plan: a kernel comes from `from_ms` to
/// gain_ms less, and that plan pays `price_ms`. At least a twentieth of it: the price is estimated.
double gain_over_plan(double gain_ms, double from_ms, double price_ms);

}  // namespace tessera::pipeline
