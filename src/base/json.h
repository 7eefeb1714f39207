// The one JSON type: keys keep the order in which they were written, so every dump is deterministic
// and diff-able.
#pragma once

// json.hpp's literal `_json` has the parser of nlohmann::json compiled in every file, half a second
// each, and Json is another type. So its body becomes a template's, which nobody calls.
#define _json(...)    \
  _json(__VA_ARGS__); \
  template <class>    \
  nlohmann::json never_called(__VA_ARGS__)  // NOLINT(bugprone-reserved-identifier)
#include <nlohmann/json.hpp>
#undef _json
#include <string_view>
#include <vector>

namespace tessera {
using Json = nlohmann::ordered_json;

// Json::parse has a parser compiled in every file that calls it, for each kind of text.
/// What a text says. Throws Json::parse_error where it is no JSON.
Json parse_json(std::string_view text);
/// The same; is_discarded() where it is no JSON.
Json try_parse_json(std::string_view text);
}  // namespace tessera

// Compiled once, in json.cpp: without this every file that reads or writes JSON compiles all of it
// again, a quarter of its time in a build without optimization.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<tessera::Json>;
extern template class std::vector<tessera::Json>;
