// The roofline model of discovery.
#pragma once

#include "rules/common/flow.h"

namespace tessera::rules {

/// max(flops / peak(precision), bytes / achievable bandwidth, one launch), in ms.
double roofline_ms(const arch::Arch& arch, Precision precision, double flops, double bytes);
/// Fills unfused_bytes, floor_ms, unfused_ms and priority from nodes, flops and min_bytes.
void estimate(const Flow& flow, const arch::Arch& arch, Pattern& p);

}  // namespace tessera::rules
