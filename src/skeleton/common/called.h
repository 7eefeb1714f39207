// What of a library of C functions a text needs.
#pragma once

#include <string>
#include <string_view>

namespace tessera::skeleton {

/// `library` without the functions that neither `text` nor a function that is kept calls. A
/// function begins with `TSR_FN ` at the begin of a line; all else stays.
std::string called(std::string_view library, std::string_view text);

}  // namespace tessera::skeleton
