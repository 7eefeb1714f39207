// Small launches of a kernel: those in which its loops have given numbers of turns, and others near.
#pragma once

#include <vector>

#include "core/kernel.h"
#include "simulate/simulate.h"

namespace tessera::replay {

struct Wanted {
  /// Numbers of turns of the kernel's loops, as terms of its parameters and of the block's index
  /// (check::Report::sizes), and what some block is to have for them. Without `turns` all launches
  /// are alike.
  std::vector<core::Term> sizes;
  std::vector<int64_t> turns;
  int most = 8;  // launches
};

struct Small {
  simulate::Launch launch;
  bool exact = false;  // some block has the wanted numbers of turns
};

/// Those with the wanted numbers first, those with less work first. Extents are tiles and parts of
/// tiles; strides that are parameters leave no gaps but for their multiples. Inputs are small whole
/// numbers, so that sums of their products are exact.
std::vector<Small> small_launches(const core::Kernel& kernel, const Wanted& wanted);

/// "M = 64, N = 128, K = 32, multiprocessors = 2", in the order of the kernel.
std::string to_string(const core::Kernel& kernel, const simulate::Launch& launch);

/// Extents and strides of a tensor in a launch, elements.
struct Lie {
  std::vector<int64_t> extents, strides;
  [[nodiscard]] int64_t span() const;  // elements from its first to behind its last
};
Result<Lie> lie_of(const core::Tensor& tensor, const simulate::Launch& launch);

}  // namespace tessera::replay
