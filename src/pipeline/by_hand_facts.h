// What compilers and the verification say of a source by hand, and the memory of a launch of it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/rules.h"
#include "toolchain/sanitize.h"
#include "tune/tune.h"

#include "attempt/verdict.h"

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

/// Why the verification of a kernel ended as it did, where it did not pass.
attempt::Failure failure_of(const tune::Trial& trial);

}  // namespace tessera::pipeline
