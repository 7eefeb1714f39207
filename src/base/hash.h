// Content hashing for cache keys and fingerprints (XXH3, 128 bits; not cryptographic).
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// 32 lower-case hex digits of the 128-bit XXH3 of `text`.
std::string content_hash(std::string_view text);

}  // namespace tessera
