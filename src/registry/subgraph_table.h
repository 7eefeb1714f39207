// The table of subgraphs that were proposed (private to the folder).
#pragma once

#include <vector>

#include "base/json.h"
#include "store/database.h"

namespace tessera::registry {

Json subgraph_record(const Json& proposed);
/// In the order in which they came.
Result<std::vector<Json>> subgraphs_of(store::Database& db);
/// Those of these names; how many there were.
Result<int> delete_subgraphs(store::Database& db, const std::vector<std::string>& names);

}  // namespace tessera::registry
