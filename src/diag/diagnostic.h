// A diagnostic is data: a stable code, what was expected, what was found, and what to do. Text and
// JSON are renderings.
//
// Codes never change meaning: TS00xx input, TS01xx layout, TS02xx graph and rules, TS03xx build and
// toolchain, TS04xx realize and tile, TS05xx numerics and verification, TS06xx registry and store,
// TS07xx processes and protocol, TS08xx the tile language and its checker, TS09xx our own faults. A
// code is declared beside its use, and explained in explain_<family>.cpp:
//
//   inline constexpr Code no_such_class{"TS0003", "input.no_such_class"};
//   return fail(no_such_class, "`{}` has no class `{}`", file, name)
//       .help("name one of: {}", names);
#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace tessera {

struct Code {
  std::string_view id;    // "TS0003"
  std::string_view name;  // "input.no_such_class"
};

enum class Level { error, warning, note };

/// Where the author's text is at fault; lines and columns count from 1, 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

/// A piece of the author's text that a diagnostic speaks of. It carries its line, so that a
/// diagnostic can be shown where the file is not.
struct Label {
  Place from;        // its first character
  int length = 1;    // characters on that line, at least 1
  std::string text;  // what it is; empty where the message says it
  std::string line;  // the author's whole line
};

/// What makes, moves and frees one is compiled once, in diagnostic.cpp: nearly every file returns
/// diagnostics.
struct Diagnostic {
  Diagnostic();
  Diagnostic(const Code& c, std::string text);
  Diagnostic(const Diagnostic&);
  Diagnostic(Diagnostic&&) noexcept;
  Diagnostic& operator=(const Diagnostic&);
  Diagnostic& operator=(Diagnostic&&) noexcept;
  ~Diagnostic();

  std::string code;
  std::string name;
  Level level = Level::error;
  std::string message;  // alone tells what is wrong; lower case, no full stop
  std::string expected;
  std::string found;
  std::vector<std::string> notes;
  std::vector<std::string> helps;  // what to do next
  Place place;
  std::vector<Label> labels;  // the first is what is wrong, the others explain it
  Json data;                  // facts for programs, an object

  template <class... Args>
  Diagnostic&& expect(fmt::format_string<Args...> f, Args&&... args) && {
    return std::move(*this).expect_text(fmt::format(f, std::forward<Args>(args)...));
  }
  template <class... Args>
  Diagnostic&& but_found(fmt::format_string<Args...> f, Args&&... args) && {
    return std::move(*this).but_found_text(fmt::format(f, std::forward<Args>(args)...));
  }
  template <class... Args>
  Diagnostic&& note(fmt::format_string<Args...> f, Args&&... args) && {
    return std::move(*this).note_text(fmt::format(f, std::forward<Args>(args)...));
  }
  template <class... Args>
  Diagnostic&& help(fmt::format_string<Args...> f, Args&&... args) && {
    return std::move(*this).help_text(fmt::format(f, std::forward<Args>(args)...));
  }
  Diagnostic&& expect_text(std::string text) &&;
  Diagnostic&& but_found_text(std::string text) &&;
  Diagnostic&& note_text(std::string text) &&;
  Diagnostic&& help_text(std::string text) &&;
  Diagnostic&& at(Place where) &&;
  /// The first label is the place, too.
  Diagnostic&& label(Label l) &&;
  Diagnostic&& with(std::string_view key, Json value) &&;
};

template <class... Args>
Diagnostic fail(const Code& code, fmt::format_string<Args...> f, Args&&... args) {
  return Diagnostic(code, fmt::format(f, std::forward<Args>(args)...));
}

/// Several lines of text: `error[TS0003]: message`, place, the author's lines with what is wrong
/// underlined, expected, found, notes, help.
std::string to_text(const Diagnostic& d);
Json to_json(const Diagnostic& d);
/// The inverse of to_json; missing fields stay empty.
Diagnostic diagnostic_from_json(const Json& j);

/// Exit codes of the command line.
enum class Exit : int {
  ok = 0,
  refuted = 1,    // it ran, and something is wrong with what was asked to be checked or verified
  undecided = 2,  // it ran, and something could not be decided or fell short
  bad_input = 3,  // the user's input, options or environment
  internal = 4,   // a fault of ours
};

/// The exit code that a diagnostic's family maps to.
Exit exit_code(const Diagnostic& d);

}  // namespace tessera
