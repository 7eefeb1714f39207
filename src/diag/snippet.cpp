#include "diag/snippet.h"

#include <algorithm>

namespace tessera {
namespace {

/// As many columns as the text before the label takes; tabs stay tabs, so that both line up.
std::string indent(const Label& l) {
  std::string out;
  int column = 1;
  for (const char c : l.line) {
    if (column >= l.from.column) break;
    const bool goes_on =
        (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;  // of one UTF-8 character
    if (goes_on) continue;
    out += c == '\t' ? '\t' : ' ';
    ++column;
  }
  return out;
}

}  // namespace

std::string snippet(const std::vector<Label>& labels) {
  std::vector<const Label*> shown;
  for (const Label& l : labels)
    if (l.from.line > 0) shown.push_back(&l);
  if (shown.empty()) return "";
  const Label* const wrong = shown.front();
  std::stable_sort(shown.begin(), shown.end(), [](const Label* a, const Label* b) {
    return std::pair(a->from.line, a->from.column) < std::pair(b->from.line, b->from.column);
  });
  const std::size_t width = std::to_string(shown.back()->from.line).size();
  const std::string margin(width + 1, ' ');
  std::string out = margin + " |\n";
  int last = 0;
  for (const Label* l : shown) {
    if (last != 0 && l->from.line > last + 1) out += "...\n";
    if (l->from.line != last) {
      const std::string number = std::to_string(l->from.line);
      out += fmt::format(" {}{} | {}\n", std::string(width - number.size(), ' '), number, l->line);
    }
    last = l->from.line;
    out += fmt::format("{} | {}{}{}{}\n", margin, indent(*l),
                       std::string(std::max(l->length, 1), l == wrong ? '^' : '-'),
                       l->text.empty() ? "" : " ", l->text);
  }
  return out + margin + " |\n";
}

}  // namespace tessera
