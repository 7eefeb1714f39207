#include "skeleton/common/called.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"

namespace tessera::skeleton {
namespace {

struct Piece {
  std::string text;
  std::string name;  // of a function; empty: no function
  bool kept = false;
};

std::vector<Piece> pieces_of(std::string_view library) {
  std::vector<Piece> out;
  std::ptrdiff_t open = 0;
  if (library.ends_with('\n')) library.remove_suffix(1);
  for (const std::string& line : split(std::string(library), '\n')) {
    if (open == 0) {
      Piece p;
      if (line.starts_with("TSR_FN ")) {
        const std::size_t end = line.find('('), begin = line.rfind(' ', end) + 1;
        p.name = line.substr(begin, end - begin);
      }
      p.kept = p.name.empty();
      out.push_back(std::move(p));
    }
    out.back().text += line + "\n";
    if (!out.back().name.empty())
      open += std::count(line.begin(), line.end(), '{') - std::count(line.begin(), line.end(), '}');
  }
  return out;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Names before an opening parenthesis.
void add_calls(std::string_view text, std::set<std::string, std::less<>>& names) {
  for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    if (begin < at) names.emplace(text.substr(begin, at - begin));
  }
}

}  // namespace

std::string called(std::string_view library, std::string_view text) {
  std::vector<Piece> pieces = pieces_of(library);
  std::set<std::string, std::less<>> names;
  add_calls(text, names);
  for (bool more = true; more;) {
    more = false;
    for (Piece& p : pieces) {
      if (p.kept || !names.contains(p.name)) continue;
      p.kept = more = true;
      add_calls(p.text, names);
    }
  }
  std::string out;
  for (const Piece& p : pieces)
    if (p.kept) out += p.text;
  return out;
}

}  // namespace tessera::skeleton
