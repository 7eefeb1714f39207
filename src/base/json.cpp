#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<tessera::Json>;
template class std::vector<tessera::Json>;
