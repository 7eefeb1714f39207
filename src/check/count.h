// What a report counts, for check.cpp alone.
#pragma once

#include "check/assertions.h"
#include "check/coverage.h"
#include "check/means.h"
#include "check/runs.h"

namespace tessera::check {

/// `meaning_proved`: all kinds that compare with the meaning are.
Coverage coverage_of(const core::Kernel& kernel, const Runs& runs,
                     const std::optional<Means>& means, const std::optional<Assertions>& asserted,
                     bool meaning_proved);

}  // namespace tessera::check
