#include "language/means_text.h"

#include <cctype>

#include "base/text.h"

namespace tessera::language {
namespace {

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Where the bracket that opens at `open` closes; npos: nowhere.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if ((text[i] == ']' || text[i] == ')') && --depth == 0) return i;
  }
  return std::string_view::npos;
}

/// What stands between commas that no bracket encloses.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (std::string& part : out) part = trim(part);
  return out;
}

}  // namespace

std::string without_dimensions(std::string_view means, std::string_view tensor,
                               const std::vector<bool>& has) {
  std::string out;
  for (std::size_t i = 0; i < means.size();) {
    const std::size_t open = i + tensor.size();
    const bool begins = means.substr(i, tensor.size()) == tensor &&
                        (i == 0 || !is_letter(means[i - 1])) && open < means.size() &&
                        means[open] == '[';
    const std::size_t close = begins ? closing(means, open) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += means[i++];
      continue;
    }
    std::vector<std::string> kept;
    const std::vector<std::string> all = parts_of(means.substr(open + 1, close - open - 1));
    for (std::size_t d = 0; d < all.size(); ++d)
      if (all.size() != has.size() || has[d]) kept.push_back(all[d]);
    out += std::string(tensor) + "[" + join(kept, ", ") + "]";
    i = close + 1;
  }
  return out;
}

std::string with_numbers(std::string_view means,
                         const std::map<std::string, std::string>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < means.size();) {
    std::size_t end = i;
    while (end < means.size() && is_letter(means[end])) ++end;
    if (end == i) {
      out += means[i++];
      continue;
    }
    const std::string word(means.substr(i, end - i));
    const auto number = numbers.find(word);
    const bool named = number != numbers.end() && (end == means.size() || means[end] != '[');
    out += named ? number->second : word;
    i = end;
  }
  return out;
}

}  // namespace tessera::language
