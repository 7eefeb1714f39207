// A file of the author's, by its text: what spans of it are called in diagnostics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"

namespace tessera {

/// Bytes [begin, end) of a source's text.
struct Span {
  int begin = 0;
  int end = 0;
  /// From the first byte of one to the last of the other.
  [[nodiscard]] Span to(Span last) const { return {begin, last.end}; }
  friend bool operator==(Span, Span) = default;
};

class Source {
 public:
  Source(std::string name, std::string text);
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string_view text(Span s) const;
  /// Line and column of a byte, counted from 1; columns count characters of UTF-8.
  [[nodiscard]] Place place(int at) const;
  /// The line, from 1, without its end.
  [[nodiscard]] std::string_view line(int number) const;
  /// The span for a diagnostic; what runs past its first line is cut there.
  [[nodiscard]] Label label(Span s, std::string text = "") const;

 private:
  std::string name_;
  std::string text_;
  std::vector<int> lines_;  // where each begins
};

}  // namespace tessera
