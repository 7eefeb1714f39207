// In which order patterns are evaluated, and how many seconds each gets of a limited budget.
#pragma once

#include <vector>

#include "pipeline/stages.h"

namespace tessera::pipeline {

/// Patterns whose candidates build in seconds come first, so that a budget spent on slow compilers
/// leaves none of them out; alternatives to a pattern of higher priority last, for most are passed
/// over once that has a kernel. Among equals the order of priority, in which `work` comes, stays.
/// Marks the alternatives. `patterns`: what Work::patterns are indices into.
void order_work(std::vector<Work>& work, const std::vector<rules::Pattern>& patterns);

/// The seconds, of those left of `total`, that work `at` gets: by its estimated cost among those
/// still to come. Alternatives come after all others and share the tenth of the total that is kept
/// for them; most are passed over once their better version is placed.
double share_of(const std::vector<Work>& work, const std::vector<rules::Pattern>& patterns,
                std::size_t at, double left, double total);

}  // namespace tessera::pipeline
