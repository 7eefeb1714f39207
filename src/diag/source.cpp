#include "diag/source.h"

#include <algorithm>

namespace tessera {
namespace {

int characters(std::string_view s) {
  return static_cast<int>(std::count_if(
      s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

}  // namespace

Source::Source(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), lines_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') lines_.push_back(static_cast<int>(i) + 1);
}

std::string_view Source::text(Span s) const {
  return std::string_view(text_).substr(s.begin, s.end - s.begin);
}

Place Source::place(int at) const {
  const auto next = std::upper_bound(lines_.begin(), lines_.end(), at);
  const auto number = static_cast<int>(next - lines_.begin());
  const int begin = lines_[static_cast<std::size_t>(number) - 1];
  return {.file = name_, .line = number, .column = characters(text({begin, at})) + 1};
}

std::string_view Source::line(int number) const {
  const auto i = static_cast<std::size_t>(number) - 1;
  const int begin = lines_[i];
  int end = i + 1 < lines_.size() ? lines_[i + 1] - 1 : static_cast<int>(text_.size());
  if (end > begin && text_[static_cast<std::size_t>(end) - 1] == '\r') --end;
  return text({begin, end});
}

Label Source::label(Span s, std::string text) const {
  const Place from = place(s.begin);
  const std::string_view whole = line(from.line);
  const int line_begin = lines_[static_cast<std::size_t>(from.line) - 1];
  const int end = std::min(s.end, line_begin + static_cast<int>(whole.size()));
  return {.from = from,
          .length = end > s.begin ? characters(this->text({s.begin, end})) : 1,
          .text = std::move(text),
          .line = std::string(whole)};
}

}  // namespace tessera
