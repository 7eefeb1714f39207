// The file that a person or an agent gives: its language, and the tunables that it declares.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "diag/result.h"

namespace tessera::attempt {

enum class Language : uint8_t { tile, cuda, cxx };
std::string_view name_of(Language language);

/// `// tunable: TILE = 16, 32, 64` on a line of its own (`#` for `//` in a kernel file): the source
/// is tried with each of these values, the first is the default. In C++ and CUDA a macro, in a
/// kernel file a constant of the kernel.
struct Tunable {
  std::string name;
  std::vector<int64_t> values;
};

struct SourceFile {
  std::string file;    // as it was given, with `:KERNEL` where it was
  std::string kernel;  // the one that is meant in a kernel file of several; else ""
  std::string text;
  Language language = Language::cxx;
  std::vector<Tunable> tunables;
};

/// Most combinations of tunables that one source may declare.
inline constexpr std::size_t most_variants = 64;

/// Reads FILE, or FILE.py:KERNEL. Its ending says its language: .py, .cu, .cpp (.cc, .cxx). Errors:
/// TS0001 no such file, TS0050 another ending, TS0049 a tunable that cannot be read, is declared
/// twice, or makes too many combinations.
Result<SourceFile> read_source(const std::string& file);

/// All combinations, {"TILE": 16, ...} each; the default first. One empty object without tunables.
std::vector<Json> combinations(const std::vector<Tunable>& tunables);

}  // namespace tessera::attempt
