// Each product of the tensor cores multiplies elements of A and of B of one batch with the same
// k.
//
// Both operands are traced through shared memory, swizzles and tensor maps to the tensors' indices,
// for every row and step of the instruction, each place to the one copy that brings it.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind k_agreement = {
    .name = "k_agreement",
    .number = 1,
    .law =
        "Each product of the tensor cores multiplies elements of A and of B of one batch with "
        "the same k.",
    .code = {"TS0873", "check.k_agreement"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
