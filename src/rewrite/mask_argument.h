// What a call of scaled_dot_product_attention takes as attn_mask for the masks of attention that is
// written out.
#pragma once

#include <vector>

#include "rewrite/score_mask.h"

namespace tessera::rewrite {

/// One value that does to scores what all `masks` do, inserted before `before`: truth values, true
/// where attended, where each of them fills scores with -inf; else what is added to scores of
/// `type`. Nothing where no one value says the same: scores that are filled by a condition of
/// numbers, or with a number beside which they do not vanish, so that a row that is masked as a
/// whole would tell its keys apart. `masks` is not empty, the outermost first.
ValueId mask_argument(Graph& g, const std::vector<MaskTerm>& masks, DType type, NodeId before,
                      const Node& like);

}  // namespace tessera::rewrite
