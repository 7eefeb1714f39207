// What compilers say of a source by hand, and the memory of a launch of it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/rules.h"
#include "toolchain/sanitize.h"

namespace tessera::pipeline {

/// The line of the source that a compiler's message names; 0 where it names none.
int line_in(const std::string& message);
/// The compiler's warnings, eight at most, from the source's name on.
std::vector<std::string> warnings_of(const toolchain::Built& built);
/// The tensors of a launch, each from its first element to its last.
std::vector<toolchain::Storage> storages(const rules::Pattern& p, const graph::Graph& g);

}  // namespace tessera::pipeline
