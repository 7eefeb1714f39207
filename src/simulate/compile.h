// The parts of `compile` (simulate/program.h).
#pragma once

#include "simulate/program.h"

namespace tessera::simulate {

/// The term's expression. TS0849 if it reads a memory, or names what no part of the kernel sets.
Result<Expression> expression(const Program& p, term::Term t);
/// TS0849 if the instruction has no meaning here.
Result<IssueCode> issue_code(const Program& program, const core::Issue& issue);
/// The launch's sizes and inputs: frame, tensors, maps, blocks. TS0849 if they do not fit.
Status bind(Program& program);

}  // namespace tessera::simulate
