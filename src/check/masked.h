// Branches that a run need not decide: what they guard changes nothing that it keeps.
#pragma once

#include "core/kernel.h"

namespace tessera::check {

/// All that the body does is to declare registers, to load them from global memory, to compute
/// them, and to compute other registers anew from themselves: a mask by position, or a function of
/// a part of the columns with tables of its own. Whether it runs, the same registers hold values
/// behind it, and nothing else has been touched.
bool only_masks(const core::Body& body);

/// It only moves between registers and global memory, thread by thread, and is complete at once.
bool only_global(const core::Issue& issue);

}  // namespace tessera::check
