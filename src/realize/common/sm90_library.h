// What the realizers for Hopper share: which statement of a product CUTLASS can take, and
// candidates from configurations.
#pragma once

#include "realize/common/cutlass_text.h"
#include "realize/common/sliced.h"

namespace tessera::realize {

/// The pattern's gemm body, for a tensor core product of less than fp32 accuracy.
Result<const rules::GemmBody*> gemm_body(const rules::Pattern& pattern);

/// tf32 and fp8 read B along k only: a product that has it otherwise is stated transposed. An error
/// where neither works.
Result<GemmProblem> restate_for_wgmma(GemmProblem p);
/// wgmma and TMA on this machine, one result, 16-byte strides and offsets.
Status check_sm90(const GemmProblem& p, const arch::Arch& arch);

/// One product, one configuration.
Candidate product_candidate(std::string_view realizer, const GemmProblem& p, const Sm90Config& c,
                            double ms, const arch::Arch& arch);
/// One candidate a configuration, at most `limit` of them.
Result<Space> product_space(std::string_view realizer, const GemmProblem& p, const arch::Arch& arch,
                            std::size_t limit);
/// The product in K slices, with every slice count as a launch; nothing where no slice count fits.
std::optional<Candidate> sliced_candidate(std::string_view realizer, const GemmProblem& p,
                                          const Sm90Config& c, const arch::Arch& arch);

/// First the best of each tile, schedule and mainloop, then their variants: each repetition of one
/// tile pays a handicap, for the model is not exact enough to spend a small budget on variants of
/// one tile.
void diversify(std::vector<Candidate>& candidates);

}  // namespace tessera::realize
