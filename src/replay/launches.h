// Small launches of a kernel: those in which its loops have given numbers of turns, and others
// near.
#pragma once

#include <optional>
#include <vector>

#include "core/kernel.h"
#include "simulate/simulate.h"

namespace tessera::replay {

struct Small {
  simulate::Launch launch;
  bool exact = false;  // some block has the wanted numbers of turns
};

/// All small launches of a kernel, found once. Extents are tiles and parts of tiles; strides that
/// are parameters leave no gaps but for their multiples. Inputs are small whole numbers, so that
/// sums of their products are exact; where threads take elements apart into what tf32 holds and the
/// rest, with a rest of up to 2^-12.
class Launches {
 public:
  /// `sizes` are numbers of turns of the kernel's loops, as terms of its parameters and of the
  /// block's index (check::Report::sizes).
  Launches(const core::Kernel& kernel, const std::vector<core::Term>& sizes);

  /// At most so many, for these numbers of turns: those that have them first (at most 4), then
  /// those with at least so many turns, then others, then those with the most turns; of each those
  /// with less work first, and whole tiles before parts of tiles. Without turns all are alike.
  [[nodiscard]] std::vector<Small> near(const std::vector<int64_t>& turns, int most) const;
  /// Of those in which the most parameters are above the least that is tried, the one with the
  /// least work: several batches, heads and tiles at once. Nothing where there is no launch.
  [[nodiscard]] std::optional<Small> several() const;

 private:
  struct Found {
    simulate::Launch launch;  // without inputs
    int64_t work = 0, elements = 0;
    int several = 0;                          // parameters that are above the least
    std::vector<std::vector<int64_t>> turns;  // by block
  };
  friend class Search;
  /// For each loop the shortest launch in which it turns most, and the one with the most turns of
  /// all.
  [[nodiscard]] std::vector<const Found*> longest() const;
  [[nodiscard]] bool alike(const Found& a, const Found& b) const;
  [[nodiscard]] simulate::Launch filled(simulate::Launch launch) const;

  const core::Kernel& kernel_;
  bool apart_ = false;               // threads take elements apart
  std::vector<std::string> varied_;  // parameters with more than two values
  std::vector<Found> found_;
};

/// "M = 64, N = 128, K = 32, multiprocessors = 2", in the order of the kernel.
std::string to_string(const core::Kernel& kernel, const simulate::Launch& launch);

/// Extents and strides of a tensor in a launch, elements.
struct Lie {
  std::vector<int64_t> extents, strides;
  [[nodiscard]] int64_t span() const;  // elements from its first to behind its last
};
Result<Lie> lie_of(const core::Tensor& tensor, const simulate::Launch& launch);

}  // namespace tessera::replay
