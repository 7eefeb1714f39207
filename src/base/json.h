// The one JSON type: keys keep the order in which they were written, so every dump is deterministic
// and diff-able.
#pragma once

#include <nlohmann/json.hpp>

namespace tessera {
using Json = nlohmann::ordered_json;
}
