// The functions of all families, and looking them up.
#include <algorithm>

#include "pointwise/pointwise.h"

namespace tessera::pointwise {

std::span<const Function> functions() {
  static const std::vector<Function> table = [] {
    std::vector<Function> all;
    for (const Family* family : families::all())
      all.insert(all.end(), family->functions.begin(), family->functions.end());
    return all;
  }();
  return table;
}

const Function* find(std::string_view name) {
  const auto table = functions();
  const auto it =
      std::find_if(table.begin(), table.end(), [&](const Function& f) { return f.name == name; });
  return it == table.end() ? nullptr : &*it;
}

}  // namespace tessera::pointwise
