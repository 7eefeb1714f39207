// A Program as text: valid Python, complete, one operation a line. The parser's inverse.
#pragma once

#include <string>

#include "tile/program.h"

namespace tessera::tile {

std::string to_string(const Program& p);

/// What an op's print hook writes with.
class Printer {
 public:
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  std::string out;
  int depth = 0;

  [[nodiscard]] const std::string& name(ValueId v) const { return kernel->values.at(v.index).name; }
  [[nodiscard]] const TileVar& var(VarId v) const { return kernel->vars.at(v.index); }
  [[nodiscard]] std::string names(const std::vector<ValueId>& values) const;
  [[nodiscard]] std::string place(ValueId view, const std::vector<Index>& indices) const;
  void line(const std::string& text);
  void region(const Region& r);
};

}  // namespace tessera::tile
