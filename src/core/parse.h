// Text to kernel: the inverse of core/print.h. docs/core.md is the grammar.
//
// What the text says is taken as it is; whether the machine can do it is the verifier's business
// (core/verify.h). Names are resolved, so a kernel that was parsed refers only to what is in scope
// where it is used.
#pragma once

#include <memory>

#include "diag/result.h"

#include "core/kernel.h"

namespace tessera::core {

inline constexpr Code bad_text{"TS0812", "core.bad_text"};

/// The first thing that is wrong, with its place: TS0812, the codes of Python's syntax (TS0801 and
/// on), those of terms (TS0822, TS0823). The source is kept as Kernel::source, and every op,
/// argument and storage has its place in it.
Result<Kernel> parse(std::shared_ptr<const Source> source);
Result<Kernel> parse(std::string name, std::string text);

/// TS0812 at a place, for readers of parts of the text.
Diagnostic bad_text_at(const Source& source, Span span, std::string_view what,
                       std::string_view expected);
/// With "did you mean" where a choice is near.
Diagnostic with_nearest(Diagnostic d, std::string_view word,
                        const std::vector<std::string>& choices);

}  // namespace tessera::core
