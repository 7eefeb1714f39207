// Subgraphs that were proposed (rules/proposed.h), in the registry's file: later runs find them in
// any module.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/result.h"

namespace tessera::registry {

class Subgraphs {
 public:
  /// Opens or creates the registry's file, as Registry::open does.
  static Result<std::unique_ptr<Subgraphs>> open(const std::filesystem::path& file);
  virtual ~Subgraphs() = default;

  /// {"name", "rationale", "model", "subgraph"}. One whose subgraph is there already stays as it
  /// is.
  virtual Status store_subgraph(const Json& proposed) = 0;
  /// All of them, in the order in which they came.
  virtual Result<std::vector<Json>> subgraphs() = 0;
  /// Takes out those of these names; entries of their kernels stay. Returns how many there were.
  virtual Result<int> withdraw(const std::vector<std::string>& names) = 0;
};

}  // namespace tessera::registry
