// What the kernels found so far save, and what is passed over for them.
#pragma once

#include <string>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// Whether options.only_kind allows it.
bool may_be_placed(const Session& s, const evaluate::Tuned::Winner& winner);

/// The least ms that a kernel which may be placed takes by itself; placeable() must not be null.
/// Which of them comes first may be settled by the module's own run, where that figure says
/// nothing: with this a later run, which finds that order, chooses as the run that made it.
double alone_ms(const Session& s, const Work& w);

/// Why a pattern is passed over: each of its ops has a kernel that saves time, or those kernels and
/// the rest of its ops one by one take no more than it could at the roofline. Else "". `max` effort
/// tries alternatives to what has a kernel too.
std::string covered_by(const Session& s, const Work& w);

}  // namespace tessera::pipeline
