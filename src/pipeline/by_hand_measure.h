// A kernel by hand on the clock, beside its peers.
#pragma once

#include <string_view>
#include <vector>

#include "pipeline/by_hand.h"
#include "pipeline/stages.h"

#include "attempt/verdict.h"

namespace tessera::pipeline {

/// What candidates by hand have in the place of a realizer.
inline constexpr std::string_view by_hand_realizer = "by_hand";

/// Times all variants, the peers that are asked for and the best that the registry has, in one
/// search; fills `measured`, `variants`, `won` and `standing`. What is the fastest of all that may
/// be placed is stored (by_hand_promote.h).
Status measure_by_hand(Session& s, Work& work, const ByHand& given,
                       const std::vector<kernel::Candidate>& variants, attempt::Verdict& v);

}  // namespace tessera::pipeline
