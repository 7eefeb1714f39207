// What must be proved of a kernel of the language before a compiler sees it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "toolchain/toolchain.h"

#include "core/kernel.h"

namespace tessera::realize {

/// For toolchain::Source::prove: runs the checker (check/check.h) over the kernel with its meaning.
/// {"verdict": "proved", "kinds", "stores", "loads", "products", "waits"}, or the diagnostic of
/// what was refuted, or TS0415 for what could not be decided.
std::function<Result<Json>()> proof_of(std::shared_ptr<const core::Kernel> kernel);
/// Of each of them, against a meaning of its own; the numbers are of all together.
std::function<Result<Json>()> proof_of(std::vector<std::shared_ptr<const core::Kernel>> kernels);

}  // namespace tessera::realize
