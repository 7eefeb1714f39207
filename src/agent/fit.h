// Text in sections, brought within a number of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::agent {

struct Section {
  std::string title;
  std::string text;  // whole lines; a section without text is left out
  int keep = 0;      // the lower, the sooner it is shortened
};

/// The sections in their order, `## title` above each. Where they are more than `tokens`, those
/// with the least `keep` are cut first: lines go from the middle, since heads say what a text is
/// and ends what became of it, and a line says how many.
std::string fit(std::vector<Section> sections, int64_t tokens);

}  // namespace tessera::agent
