// Variants of kernels/attention.py, and edits of its text, as tests of its proof ask for them.
#pragma once

#include <map>
#include <string>

#include "check/check.h"
#include "language/language.h"

namespace tessera::proofs {

using Constants = std::map<std::string, language::Constant>;

/// The text of kernels/attention.py.
std::string attention_text();

/// The text with `to` in the place of the first `from` behind its meaning; throws where there is
/// none.
std::string edited_attention(const std::string& from, const std::string& to);

/// What the checker says of it. Constants that are not given are those of a small tile.
check::Report attention_report(const std::string& text, Constants constants);

}  // namespace tessera::proofs
