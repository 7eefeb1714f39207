// Skeletons carry the helpers of all functions of single elements; a view has those that are used.
#pragma once

#include <string>
#include <string_view>

namespace tessera::agent {

/// The source without the functions that begin with `marker` ("TSR_FN") and that nothing else of it
/// uses, directly or through others.
std::string without_unused(const std::string& source, std::string_view marker);

}  // namespace tessera::agent
