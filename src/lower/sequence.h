// Kernels in one library, launched one after the other: what one leaves in the workspace, later
// ones take from there.
//
// Each kernel is checked by itself, against a meaning of its own. Together they mean the last one's
// where what it reads is what others write: `agree` names integers of two kernels that say so, and
// each launch is refused where they differ.
#pragma once

#include <string>
#include <vector>

#include "lower/lower.h"

namespace tessera::lower {

struct Sequence {
  /// An output of kernel `from` that is an input of kernel `to`. It lies in the workspace.
  struct Passed {
    std::size_t from = 0;
    std::string output;
    std::size_t to = 0;
    std::string input;
  };
  /// Integers of two kernels that are one number.
  struct Same {
    std::size_t first = 0;
    std::string of_first;
    std::size_t second = 0;
    std::string of_second;
  };
  std::vector<const core::Kernel*> kernels;  // in the order of their launches
  std::vector<Passed> passed;
  std::vector<Same> agree;
};

/// As lower() of one kernel. The integers of a launch are those of the first kernel, then those of
/// the next, each name behind its kernel's: `partial_M`. `places_at_launch` goes without saying.
/// TS0855 where a tensor cannot be passed.
Result<CudaSource> lower(const Sequence& s, const Options& options);

// For lower() alone.

Status check_sequence(const Sequence& s);
/// What of a kernel's tensors lies in the workspace.
std::vector<std::string> in_workspace(const Sequence& s, std::size_t kernel);
/// The namespace of a kernel's functions, on both sides.
std::string sequence_space(std::size_t kernel);
/// The C interface around `run` of all; `ints` are those of a launch, by kernel.
Result<std::string> sequence_host(const Sequence& s, const Options& options,
                                  const std::vector<std::vector<std::string>>& ints);

}  // namespace tessera::lower
