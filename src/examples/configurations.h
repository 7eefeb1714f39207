// Configurations that are known to be good: what won where it was measured, here or on the machines
// whose results come with tessera.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "registry/registry.h"

namespace tessera::examples {

struct Known {
  std::string rule;
  std::string precision;
  std::string arch;
  std::string device;
  std::string summary;  // the pattern's, or its signature
  std::string realizer;
  Json config = Json::object();  // may leave out what its source does not say
  Json knobs = Json::object();
  Json extents = Json::object();  // {"m": 4096, …}: registry::extents
  double ms = 0;
  std::string origin;  // a row of bench/results, or an entry of the registry
  /// Twelve hex digits that name it: of its content.
  [[nodiscard]] std::string name() const;
};

Json to_json(const Known& k);

struct Configurations {
  std::vector<Known> known;
  std::vector<std::string> notes;  // files that could not be read, and why
};

/// Those of every *.json of `folder` (schema tessera.configurations/1). A folder that is missing,
/// and a file that is not of this form, become notes.
Configurations measured(const std::filesystem::path& folder);

/// Every winner that tessera wrote among accepted entries; imported ones were not tried here, and
/// are left out.
std::vector<Known> learned(const std::vector<registry::Entry>& entries);

}  // namespace tessera::examples
