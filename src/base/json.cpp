#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<tessera::Json>;
template class std::vector<tessera::Json>;

namespace tessera {

Json parse_json(std::string_view text) {
  return Json::parse(text);
}

Json try_parse_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

}  // namespace tessera
