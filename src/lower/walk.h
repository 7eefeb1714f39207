// What the lowering asks of ops.
#pragma once

#include "core/walk.h"

namespace tessera::lower {

using core::for_each_op;
using core::waits_for_grids;

/// True where a whole warp executes the instruction together.
bool is_of_warp(const arch::Form& form);

/// Whether the lanes of a warp may be at different places after the body, if they may before it.
bool apart_after(const core::Kernel& kernel, const core::Body& body, bool before);

/// Whether the lanes of a warp may differ about the predicate.
bool depends_on_lane(const core::Kernel& kernel, term::Term t);

}  // namespace tessera::lower
