// Small functions that the emitted text may call, beyond instructions: by name, as CUDA C++.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace tessera::lower {

/// The texts of these helpers, in one order; a name that is none is a fault of ours.
std::string helper_functions(const std::set<std::string>& names);

}  // namespace tessera::lower
