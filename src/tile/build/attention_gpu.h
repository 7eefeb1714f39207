// What the GPU's attention program and its configurations both follow from.
#pragma once

#include "tile/build/attention.h"

namespace tessera::tile::build {

/// What the schedule follows from.
struct AttentionShape {
  const arch::Mma* by = nullptr;
  int terms = 1;
  int warps = 4;
  int64_t size = 4;              // bytes of an element
  int64_t depth = 0, width = 0;  // covers of the head dim and the value dim
  [[nodiscard]] int threads() const { return warps * 32; }
};

/// Fails with TS0401 when the configuration does not tile the problem.
Result<AttentionShape> attention_shape(const AttentionProblem& p, const AttentionConfig& c);

/// Registers a thread needs: queries, scores, sums, and what is in flight between them. The last is
/// what ptxas was seen to want.
int64_t attention_registers(const AttentionShape& s, const AttentionConfig& c);

}  // namespace tessera::tile::build
