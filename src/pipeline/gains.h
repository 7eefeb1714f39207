// What the kernels found so far save, and what a better one would.
#pragma once

#include <string>
#include <vector>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// Whether options.only_kind allows it.
bool may_be_placed(const Session& s, const kernel::Winner& winner);

/// The least ms that a kernel which may be placed takes by itself; placeable() must not be null.
/// Where that is the pattern's own ops it is their time: what is faster by noise is no gain.
/// Which of them comes first may be settled by the module's own run, where that figure says
/// nothing: with this a later run, which finds that order, chooses as the run that made it.
double alone_ms(const Session& s, const Work& w);

/// What is known of a work's times.
struct Price {
  double eager_ms = 0;  // of its ops one by one; 0: not measured, and estimated
  double best_ms = 0;   // of its fastest kernel that is more than those ops; 0: none
};
Price price_of(const Session& s, const Work& w);

/// Which kernels would be placed if the search ended now, and what that means for each work.
class Standing {
 public:
  /// `prices`: parallel to s.work.
  Standing(const Session& s, const std::vector<Price>& prices);

  /// The ms that a kernel at each of the work's places has to come below to save anything: what its
  /// ops take one by one, less what the kernels of other works save that it would put out of their
  /// places. At `max` effort these count for nothing, so that alternatives are tried too.
  [[nodiscard]] const std::vector<double>& bars(std::size_t work) const { return bars_[work]; }
  /// The largest of them, and how many places reach `ms`.
  [[nodiscard]] double bar(std::size_t work) const;
  [[nodiscard]] int places_above(std::size_t work, double ms) const;
  /// The ms of the module that the work's kernel saves where it is placed.
  [[nodiscard]] double saved_ms(std::size_t work) const { return saved_[work]; }

 private:
  std::vector<std::vector<double>> bars_;
  std::vector<double> saved_;
};

}  // namespace tessera::pipeline
