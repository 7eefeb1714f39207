#include "skeleton/common/unused.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/text.h"

namespace tessera::skeleton {
namespace {

struct Chunk {
  std::string text;
  std::string name;  // of a helper; "" for what always stays
  bool stays = false;
};

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end > i) out.insert(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return out;
}

/// The word before the first parenthesis.
std::string name_of(const std::string& line) {
  const std::size_t open = line.find('(');
  if (open == std::string::npos) return "";
  std::size_t begin = open;
  while (begin > 0 && is_name_character(line[begin - 1])) --begin;
  return line.substr(begin, open - begin);
}

std::vector<Chunk> chunks_of(const std::string& source, std::string_view marker) {
  std::vector<Chunk> out;
  int64_t depth = 0;
  bool inside = false;
  for (const std::string& line : split(source, '\n')) {
    if (!inside) {
      const bool helper = line.starts_with(marker);
      if (helper || out.empty() || !out.back().stays)
        out.push_back({.name = helper ? name_of(line) : "", .stays = !helper});
      inside = helper;
    }
    out.back().text += line + "\n";
    depth += std::count(line.begin(), line.end(), '{') - std::count(line.begin(), line.end(), '}');
    if (inside && depth == 0) inside = line.find('}') == std::string::npos;  // else a head of lines
  }
  out.back().text.pop_back();  // the last line has no end of its own
  return out;
}

}  // namespace

std::string without_unused(const std::string& source, std::string_view marker) {
  std::vector<Chunk> chunks = chunks_of(source, marker);
  std::set<std::string> used;
  const auto use = [&](const Chunk& c) {
    for (const std::string& word : words_of(c.text)) used.insert(word);
  };
  for (const Chunk& c : chunks) {
    if (c.stays) use(c);
  }
  for (bool more = true; more;) {
    more = false;
    for (Chunk& c : chunks) {
      if (c.stays || !used.contains(c.name)) continue;
      c.stays = more = true;
      use(c);
    }
  }
  std::string out;
  for (const Chunk& c : chunks) out += c.stays ? c.text : "";
  return out;
}

}  // namespace tessera::skeleton
