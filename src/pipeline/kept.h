// Results of whole modules that are as good as measuring again, as files in the cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace tessera::pipeline {

/// One result a kind and key. The key names all that the result depends on, in full. Files are
/// replaced whole, so several processes may keep results at once.
class Kept {
 public:
  explicit Kept(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// None too where the file cannot be read: what is lost is measured again.
  [[nodiscard]] std::optional<Json> find(const std::string& kind, const std::string& key) const;
  void keep(const std::string& kind, const std::string& key, const Json& result) const;

 private:
  [[nodiscard]] std::filesystem::path place(const std::string& kind, const std::string& key) const;
  std::filesystem::path folder_;
};

}  // namespace tessera::pipeline
