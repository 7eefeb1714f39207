// What a reading is of: the factor of the meaning, and the copies by their ops.
#pragma once

#include "check/operand.h"

namespace tessera::check {

/// The place of an op; nullptr: it is none of these.
const Place* place_of(const std::vector<Place>& all, const core::Op* op);

/// Of the left factor of the meaning, or of the right ones; of no rows and no steps yet.
Reading reading_of(const core::Kernel& kernel, const Means& means, bool left, const Place& reader,
                   const core::SharedAt& at, std::vector<const Place*> writers);

}  // namespace tessera::check
