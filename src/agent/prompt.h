// The prompts: files `knowledge/prompts/NAME.md`, whose first line says name and version:
// `<!-- tessera.prompt/1 write 1 -->`. A change of a text is a new version.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "diag/result.h"

namespace tessera::agent {

struct Prompt {
  std::string name;  // "write"
  int version = 0;
  std::string text;
  /// "write/1"
  [[nodiscard]] std::string id() const;
};

class Prompts {
 public:
  /// Error TS0740: a prompt is missing, or its first line does not say what it is.
  static Result<Prompts> read(const std::filesystem::path& folder);
  [[nodiscard]] const Prompt& at(const std::string& name) const { return prompts_.at(name); }
  /// Of all texts: an archived run is of these prompts.
  [[nodiscard]] std::string hash() const;

 private:
  std::map<std::string, Prompt> prompts_;
};

}  // namespace tessera::agent
