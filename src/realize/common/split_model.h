// What a product at fp32 accuracy costs on Hopper's tensor cores: each operand as two tf32 parts,
// three products.
#pragma once

#include "realize/common/sm90_config.h"

namespace tessera::realize {

/// Elements of both operands; those that all batches share count once.
int64_t operand_elements(const GemmProblem& p);
/// Predicted milliseconds of a split mainloop.
double predict_split_ms(const Sm90Config& c, const GemmProblem& p, const arch::Arch& arch);

}  // namespace tessera::realize
