// Whether a kernel with the meaning of attention does what it means, for all sizes.
//
// Which elements meet in products is traced to the tensors (attend_products.h); what becomes of the
// scores is followed through registers (attend_walk.h, online.h); which keys a row sees is compared
// with what is masked (seen_keys.h). Here: that the loop over keys comes to each block once,
// reaches the last key that a row sees, and that blocks take each tile of queries once.
#pragma once

#include "check/attention_means.h"
#include "check/flow.h"

namespace tessera::check {

/// `runs` have been proved.
Flow attend(const core::Kernel& kernel, const Runs& runs, const Attention& means);

}  // namespace tessera::check
