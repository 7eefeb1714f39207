#include "rules/common/examples.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "base/files.h"
#include "base/json.h"

namespace tessera::rules {

namespace fs = std::filesystem;

namespace {

int rank_of(const std::string& kind) {
  if (kind == "kernel_file") return 0;
  if (kind == "example") return 1;
  return kind == "unit_test" ? 2 : 3;
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

ExampleIndex::ExampleIndex(const fs::path& folder) {
  std::error_code ec;
  if (folder.empty() || !fs::is_directory(folder, ec)) {
    notes_.push_back("no examples index found: set TESSERA_KNOWLEDGE to the knowledge folder");
    return;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const Json j = try_parse_json(read_file(file));
    if (!j.is_object() || !j.contains("examples") || !j["examples"].is_array()) {
      notes_.push_back(fmt::format("{} is not an examples index", file.filename().string()));
      continue;
    }
    for (const Json& e : j["examples"]) {
      examples_.push_back({e.value("rule", ""), e.value("precisions", std::vector<std::string>{}),
                           e.value("archs", std::vector<std::string>{}), j.value("root", "cutlass"),
                           e.value("path", ""), e.value("kind", ""), e.value("shows", "")});
    }
  }
  std::stable_sort(examples_.begin(), examples_.end(), [](const Example& a, const Example& b) {
    return rank_of(a.kind) < rank_of(b.kind);
  });
}

std::vector<std::string> ExampleIndex::find(std::string_view rule, Precision precision,
                                            std::string_view arch) const {
  std::vector<std::string> result;
  for (const Example& e : examples_)
    if (e.rule == rule && contains(e.precisions, name_of(precision)) && contains(e.archs, arch))
      result.push_back(fmt::format("{}: {}", e.path, e.shows));
  return result;
}

fs::path examples_folder() {
  return knowledge_folder("examples");
}

fs::path knowledge_folder(std::string_view part) {
  if (const char* home = std::getenv("TESSERA_KNOWLEDGE"); home != nullptr && *home != 0)
    return fs::path(home) / part;
  std::error_code ec;
  for (fs::path at = executable_folder();; at = at.parent_path()) {
    for (const fs::path& place :
         {at / "knowledge" / part, at / "share" / "tessera" / "knowledge" / part})
      if (fs::is_directory(place, ec)) return place;
    if (at == at.parent_path()) return {};
  }
}

}  // namespace tessera::rules
