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
  std::string root;   // "cutlass" or "tessera": whose tree
  std::string path;   // within it; of a kernel file with several kernels, FILE.py:KERNEL
  std::string kind;   // "kernel_file", "example", "unit_test", "header"
  std::string shows;  // what to learn from it
};

class ExampleIndex {
 public:
  /// Reads every *.json of `folder`; a missing folder or a bad file becomes a note.
  explicit ExampleIndex(const std::filesystem::path& folder);
  /// Paths with what they show, best first: kernel files, examples, unit tests, headers.
  [[nodiscard]] std::vector<std::string> find(std::string_view rule, Precision precision,
                                              std::string_view arch) const;
  /// All of them, best first.
  [[nodiscard]] const std::vector<Example>& examples() const { return examples_; }
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
/// Likewise, of another part of the knowledge folder: "configurations".
std::filesystem::path knowledge_folder(std::string_view part);

}  // namespace tessera::rules
