#include "examples/configurations.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/files.h"
#include "base/hash.h"

namespace tessera::examples {

namespace fs = std::filesystem;

namespace {

Known known_from_json(const Json& j) {
  return {.rule = j.at("rule"),
          .precision = j.at("precision"),
          .arch = j.at("arch"),
          .device = j.at("device"),
          .summary = j.at("summary"),
          .realizer = j.at("realizer"),
          .config = j.at("config"),
          .knobs = j.at("knobs"),
          .extents = j.at("extents"),
          .ms = j.at("ms"),
          .origin = j.at("origin")};
}

}  // namespace

std::string Known::name() const {
  Json all = to_json(*this);
  all.erase("name");
  return content_hash(all.dump()).substr(0, 12);
}

Json to_json(const Known& k) {
  Json j = {{"rule", k.rule},         {"precision", k.precision},
            {"arch", k.arch},         {"device", k.device},
            {"summary", k.summary},   {"extents", k.extents},
            {"realizer", k.realizer}, {"config", k.config},
            {"knobs", k.knobs},       {"ms", k.ms},
            {"origin", k.origin}};
  return j;
}

Configurations measured(const fs::path& folder) {
  Configurations out;
  std::error_code ec;
  if (folder.empty() || !fs::is_directory(folder, ec)) {
    out.notes.emplace_back(
        "no measured configurations found: set TESSERA_KNOWLEDGE to the knowledge folder");
    return out;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    try {
      const Json all = parse_json(read_file(file));
      for (const Json& c : all.at("configurations")) out.known.push_back(known_from_json(c));
    } catch (const Json::exception& e) {
      out.notes.push_back(fmt::format("{} is not a list of configurations: {}",
                                      file.filename().string(), e.what()));
    }
  }
  return out;
}

std::vector<Known> learned(const std::vector<registry::Entry>& entries) {
  std::vector<Known> out;
  for (const registry::Entry& e : entries) {
    if (e.provenance.imported) continue;
    for (const kernel::Winner& w : e.winners) {
      if (w.candidate.kind != kernel::Kind::synthesized) continue;
      out.push_back({.rule = e.rule,
                     .precision = e.key.precision,
                     .arch = e.arch,
                     .device = e.key.device,
                     .summary = e.key.signature,
                     .realizer = w.candidate.realizer,
                     .config = w.candidate.config,
                     .knobs = w.launched().knobs,
                     .extents = registry::extents(e.shape),
                     .ms = w.evidence.ms,
                     .origin = "registry, entry " + e.key.hash().substr(0, 12)});
    }
  }
  return out;
}

}  // namespace tessera::examples
