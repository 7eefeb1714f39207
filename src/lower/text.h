// Lines of emitted text with their indentation.
#pragma once

#include <fmt/format.h>
#include <string>

namespace tessera::lower {

class Text {
 public:
  explicit Text(int level = 0) : level_(level) {}
  template <class... Args>
  void line(fmt::format_string<Args...> f, Args&&... args) {
    raw(fmt::format(f, std::forward<Args>(args)...));
  }
  /// One or more lines, each indented.
  void raw(const std::string& lines);
  /// A line that ends in `{`, and what is inside of it.
  template <class... Args>
  void open(fmt::format_string<Args...> f, Args&&... args) {
    raw(fmt::format(f, std::forward<Args>(args)...) + " {");
    ++level_;
  }
  void block() {
    raw("{");
    ++level_;
  }
  void close(const std::string& with = "}") {
    --level_;
    raw(with);
  }
  /// Closes what is open and opens what comes instead.
  void turn(const std::string& with) {
    close(with);
    ++level_;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  int level_;
};

}  // namespace tessera::lower
