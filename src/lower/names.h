// Names of a C++ text: each once, and none that the language or the text's own head has taken.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace tessera::lower {

class Names {
 public:
  Names();
  /// `wanted` as an identifier, with a number behind it where it is taken.
  std::string claim(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace tessera::lower
