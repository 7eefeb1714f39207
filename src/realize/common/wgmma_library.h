// Candidates of the product in plain CUDA C++: which configurations a problem has, and their
// sources.
#pragma once

#include "realize/common/wgmma_text.h"
#include "realize/realize.h"

namespace tessera::realize {

/// The problem as the kernel computes it: with row-major results. An error where it has no form.
Result<GemmProblem> restate_for_rows(GemmProblem p, const arch::Arch& arch);

/// At most `limit` candidates, best prediction first. An error when no tile fits.
Result<Space> wgmma_space(std::string_view realizer, const GemmProblem& p, const arch::Arch& arch,
                          std::size_t limit);

/// The same of the product in slices of K, with several slice counts as launches: what is predicted
/// to beat the product in one piece. Needs one batch and one result.
Result<Space> wgmma_sliced_space(std::string_view realizer, const GemmProblem& p,
                                 const arch::Arch& arch, std::size_t limit);

}  // namespace tessera::realize
