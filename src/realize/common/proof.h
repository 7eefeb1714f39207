// What must be proved of a kernel of the language before a compiler sees it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "toolchain/toolchain.h"

#include "core/kernel.h"

namespace tessera::realize {

/// As toolchain::Source::prove.
using Proof = std::function<Result<Json>()>;

/// The first call asks `proof`. All others, of copies and from other threads too, get its answer.
Proof made_once(Proof proof);

/// Runs the checker (check/check.h) over the kernel with its meaning: {"verdict": "proved",
/// "kinds", "stores", "loads", "products", "waits"}, or the diagnostic of what was refuted, or
/// TS0415 for what could not be decided. Made once: the checker adds to the kernel's terms, which
/// one thread at a time may do, and sources that share a kernel are built side by side.
Proof proof_of(std::shared_ptr<const core::Kernel> kernel);
/// All of them, each against a meaning of its own; the numbers are of all together.
Proof proof_of_all(std::vector<Proof> proofs);

}  // namespace tessera::realize
