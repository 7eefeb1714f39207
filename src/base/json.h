// The one JSON type: keys keep the order in which they were written, so every dump is deterministic
// and diff-able.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace tessera {
using Json = nlohmann::ordered_json;
}

// Compiled once, in json.cpp: without this every file that reads or writes JSON compiles all of it
// again, a quarter of its time in a build without optimization.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<tessera::Json>;
extern template class std::vector<tessera::Json>;
