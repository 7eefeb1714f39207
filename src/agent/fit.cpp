#include "agent/fit.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"

#include "llm/message.h"

namespace tessera::agent {
namespace {

std::string written(const std::vector<Section>& sections) {
  std::string out;
  for (const Section& s : sections) {
    if (!s.text.empty()) out += fmt::format("## {}\n{}", s.title, s.text);
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// The text with so many bytes less at least; one line where that is more than it has.
std::string shortened(const std::string& text, std::size_t bytes) {
  const std::vector<std::string> lines = lines_of(text);
  const auto told = [](std::size_t n) { return fmt::format("... {} lines left out\n", n); };
  std::size_t first = lines.size() / 2, last = first;  // [first, last) go
  std::size_t gone = 0;
  while (gone < bytes + told(lines.size()).size() && (first > 0 || last < lines.size())) {
    // From the middle outwards, two lines behind it for each before it.
    const bool before = first > 0 && (last == lines.size() || (last - first) % 3 == 2);
    gone += lines[before ? --first : last++].size() + 1;
  }
  std::string out;
  for (std::size_t i = 0; i < first; ++i) out += lines[i] + "\n";
  out += told(last - first);
  for (std::size_t i = last; i < lines.size(); ++i) out += lines[i] + "\n";
  return out;
}

}  // namespace

std::string fit(std::vector<Section> sections, int64_t tokens) {
  std::vector<Section*> by_keep;
  for (Section& s : sections) by_keep.push_back(&s);
  std::stable_sort(by_keep.begin(), by_keep.end(),
                   [](const Section* a, const Section* b) { return a->keep < b->keep; });
  std::string out = written(sections);
  for (Section* s : by_keep) {
    const int64_t over = llm::estimated_tokens(out) - tokens;
    if (over <= 0) break;
    if (s->text.empty()) continue;
    s->text = shortened(s->text, static_cast<std::size_t>(over) * 3);
    out = written(sections);
  }
  return out;
}

}  // namespace tessera::agent
