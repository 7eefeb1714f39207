// What a call of scaled_dot_product_attention takes as attn_mask for the masks of attention that is
// written out.
#pragma once

#include <vector>

#include "rewrite/score_mask.h"

namespace tessera::rewrite {

/// One value that does to scores what all `masks` do, inserted before `before`: truth values, true
/// where attended, where each of them fills scores with -inf; else what is added to scores of
/// `type`, -inf where one of them fills. Nothing where no one value says the same: scores that are
/// filled with a finite number (a row that is masked as a whole attends to everything then), or by
/// a condition of numbers. `masks` is not empty.
ValueId mask_argument(Graph& g, const std::vector<MaskTerm>& masks, DType type, NodeId before,
                      const Node& like);

}  // namespace tessera::rewrite
