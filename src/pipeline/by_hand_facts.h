// What compilers say of a source by hand, and the memory of a launch of it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/rules.h"
#include "toolchain/sanitize.h"

#include "attempt/verdict.h"
#include "kernel/winner.h"

namespace tessera::pipeline {

/// The line of the source that a compiler's message names; 0 where it names none.
int line_in(const std::string& message);
/// The compiler's warnings, eight at most, from the source's name on.
std::vector<std::string> warnings_of(const toolchain::Built& built);
/// The tensors of a launch, each from its first element to its last.
std::vector<toolchain::Storage> storages(const rules::Pattern& p, const graph::Graph& g);

/// How many tensors the source's own tessera_describe lists; 0 where its text does not say.
std::size_t described_tensors(const std::string& source);
/// That the source is for another number of tensors than `p` has, and which of `all` have as many;
/// "" where it is not, or does not say.
std::string for_other_tensors(const std::string& source, const rules::Pattern& p,
                              const std::vector<rules::Pattern>& all, const graph::Graph& g);

/// Whether the spread is so large that other work ran on the machine (settle.h, `most_noise`).
bool disturbed(double ms, double ci95);
/// Why a time does not take the place of a stored one; "" where it does. A disturbed time ranks
/// nothing that lies within its spread. `stored`: null where there is none.
std::string why_not_stored(const attempt::Measured& m, const kernel::Winner* stored);

}  // namespace tessera::pipeline
