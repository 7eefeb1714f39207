// Two kernels in one library, launched one after the other: what the first leaves in the workspace,
// the second takes from there.
//
// Each kernel is checked by itself, against a meaning of its own. Together they mean the second's
// where what it reads is what the first one writes: `agree` names integers of both that say so, and
// each launch is refused where they differ.
#pragma once

#include <utility>

#include "lower/lower.h"

namespace tessera::lower {

struct Sequence {
  const core::Kernel& first;
  const core::Kernel& second;
  std::string between;  // the tensor, an output of the first and an input of the second
  std::vector<std::pair<std::string, std::string>> agree;
};

/// As lower() of one kernel. The integers of a launch are those of the first kernel, then those of
/// the second, each name behind its kernel's: `partial_M`. `places_at_launch` goes without saying.
/// TS0855 where the tensor is not such.
Result<CudaSource> lower(const Sequence& s, const Options& options);

// For lower() alone.

Status check_sequence(const Sequence& s);
/// The namespace of a kernel's functions, on both sides.
std::string sequence_space(std::size_t part);
/// The C interface around `run` of both; `ints` are those of a launch, the first `of_first` the
/// first kernel's.
Result<std::string> sequence_host(const Sequence& s, const Options& options,
                                  const std::vector<std::string>& ints, std::size_t of_first);

}  // namespace tessera::lower
