// What nearly every file includes, parsed once for all (cmake/Layer.cmake). None of them includes
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/json.h"

// Compiled once, in precompiled.cpp, instead of in nearly every file.
extern template class std::basic_string<char>;
extern template class std::vector<std::string>;
extern template class std::vector<int>;
extern template class std::vector<int64_t>;
