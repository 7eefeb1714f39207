#include "pipeline/kept.h"

#include "base/files.h"
#include "base/hash.h"

namespace tessera::pipeline {

std::filesystem::path Kept::place(const std::string& kind, const std::string& key) const {
  return folder_ / kind / (content_hash(key) + ".json");
}

std::optional<Json> Kept::find(const std::string& kind, const std::string& key) const {
  std::error_code ignored;
  const std::filesystem::path file = place(kind, key);
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  Json kept = try_parse_json(read_file(file));
  if (!kept.is_object() || !kept.contains("result")) return std::nullopt;
  return std::move(kept.at("result"));
}

void Kept::keep(const std::string& kind, const std::string& key, const Json& result) const {
  write_file_atomically(place(kind, key), Json{{"result", result}}.dump());
}

}  // namespace tessera::pipeline
