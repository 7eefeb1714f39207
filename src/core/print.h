// A kernel's text: Python syntax, complete, one form. docs/core.md is its grammar.
//
// What is not in the text does not exist: parse(to_string(k)) is the same kernel as k
// (core/testing/same.h), but for registers that no op declares. Terms are as term::to_string writes
// them; those that a body has more than once are named in it (core/aliases.h).
#pragma once

#include <string>

#include "core/kernel.h"

namespace tessera::core {

std::string to_string(const Kernel& k);
/// One argument of an instruction: `a[k % 4, 0, 0]`, `full[0]`, `A_map`, `[k * 64, row]`, `1`.
std::string to_string(const Kernel& k, const Argument& a);
/// The statement in one line; of an op with a body its head, without the colon.
std::string head_of(const Kernel& k, const Op& op);

/// The bytes of a swizzle's rows as texts have them: None, 32, 64, 128.
std::string swizzle_text(arch::SwizzleMode s);

}  // namespace tessera::core
