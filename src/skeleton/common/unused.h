// A skeleton has those helpers of functions of single elements that it uses.
#pragma once

#include <string>
#include <string_view>

namespace tessera::skeleton {

/// The source without the functions that begin with `marker` ("TSR_FN") and that nothing else of it
/// uses, directly or through others.
std::string without_unused(const std::string& source, std::string_view marker);

}  // namespace tessera::skeleton
