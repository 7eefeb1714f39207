// The index of vetted examples by rule, element type and architecture (knowledge/examples/*.json).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "arch/arch.h"
#include "numeric/dtype.h"

namespace tessera::rules {

struct Example {
  std::string rule;
  std::vector<std::string> precisions;
  std::vector<std::string> archs;
  std::string path;   // within the CUTLASS tree
  std::string kind;   // "example", "unit_test", "header"
  std::string shows;  // what to learn from it
};

class ExampleIndex {
 public:
  /// Reads every *.json of `folder`; a missing folder or a bad file becomes a note.
  explicit ExampleIndex(const std::filesystem::path& folder);
  /// Paths with what they show, best first: examples before unit tests before headers.
  [[nodiscard]] std::vector<std::string> find(std::string_view rule, Precision precision,
                                              std::string_view arch) const;
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] bool empty() const { return examples_.empty(); }

 private:
  std::vector<Example> examples_;
  std::vector<std::string> notes_;
};

/// $TESSERA_KNOWLEDGE/examples; else the nearest knowledge/examples, or
/// share/tessera/knowledge/examples, in a folder above the executable; an empty path when there is
/// none.
std::filesystem::path examples_folder();

}  // namespace tessera::rules
