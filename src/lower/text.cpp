#include "lower/text.h"

#include "base/text.h"

namespace tessera::lower {

void Text::raw(const std::string& lines) {
  for (const std::string& line : split(lines, '\n')) {
    if (!line.empty() && line.front() != '#')
      text_.append(2 * static_cast<std::size_t>(level_), ' ');
    text_ += line + "\n";
  }
}

}  // namespace tessera::lower
