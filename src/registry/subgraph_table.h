// The table of subgraphs that were proposed (private to the folder).
#pragma once

#include <vector>

#include "base/json.h"
#include "store/database.h"

namespace tessera::registry {

Json subgraph_record(const Json& proposed);
/// In the order in which they came.
Result<std::vector<Json>> subgraphs_of(store::Database& db);

}  // namespace tessera::registry
