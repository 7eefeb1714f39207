#include "lower/text.h"

#include "base/text.h"

namespace tessera::lower {

void Text::raw(const std::string& lines) {
  for (const std::string& line : split(lines, '\n')) {
    if (!line.empty() && line.front() != '#')
      text_.append(static_cast<std::size_t>(2 * level_), ' ');
    text_ += line + "\n";
  }
}

}  // namespace tessera::lower
