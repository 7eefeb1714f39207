// Single edits near an op that might mend it, for repair.cpp alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/kernel.h"

namespace tessera::replay {

/// An op's place in a kernel or a copy of it.
struct Spot {
  core::Body* body = nullptr;
  std::size_t index = 0;
  std::vector<core::For*> loops;  // around, that count at run time
  [[nodiscard]] core::Op& op() const { return (*body)[index]; }
};

struct CandidateEdit {
  std::string text;  // what it does
  const core::Op* at = nullptr;
  std::function<void(core::Kernel& copy, const Spot& spot)> apply;
};

/// Of an op of the kernel, likely ones first. `other`: the access that it conflicts with, or null.
std::vector<CandidateEdit> edits_at(const core::Kernel& kernel, const core::Op& op,
                                    const core::Op* other);

/// The spot of the n-th op of a body, in the order of core::for_each_op.
std::optional<Spot> spot_of(core::Kernel& kernel, int n);

}  // namespace tessera::replay
