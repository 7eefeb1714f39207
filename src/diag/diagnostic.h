// A diagnostic is data: a stable code, what was expected, what was found, and what to do. Text and
// JSON are renderings.
//
// Codes never change meaning: TS00xx input, TS01xx layout, TS02xx graph and rules, TS03xx build and
// toolchain, TS04xx realize and tile, TS05xx numerics and verification, TS06xx registry and store,
// TS07xx processes and protocol, TS08xx index terms, TS09xx our own faults. A code is declared
// beside its use, and explained in explain_<family>.cpp:
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

struct Diagnostic {
  std::string code;
  std::string name;
  Level level = Level::error;
  std::string message;  // alone tells what is wrong; lower case, no full stop
  std::string expected;
  std::string found;
  std::vector<std::string> notes;
  std::vector<std::string> helps;  // what to do next
  Place place;
  Json data = Json::object();  // facts for programs

  template <class... Args>
  Diagnostic&& expect(fmt::format_string<Args...> f, Args&&... args) && {
    expected = fmt::format(f, std::forward<Args>(args)...);
    return std::move(*this);
  }
  template <class... Args>
  Diagnostic&& but_found(fmt::format_string<Args...> f, Args&&... args) && {
    found = fmt::format(f, std::forward<Args>(args)...);
    return std::move(*this);
  }
  template <class... Args>
  Diagnostic&& note(fmt::format_string<Args...> f, Args&&... args) && {
    notes.push_back(fmt::format(f, std::forward<Args>(args)...));
    return std::move(*this);
  }
  template <class... Args>
  Diagnostic&& help(fmt::format_string<Args...> f, Args&&... args) && {
    helps.push_back(fmt::format(f, std::forward<Args>(args)...));
    return std::move(*this);
  }
  Diagnostic&& at(Place where) && {
    place = std::move(where);
    return std::move(*this);
  }
  Diagnostic&& with(std::string_view key, Json value) && {
    data[std::string(key)] = std::move(value);
    return std::move(*this);
  }
};

template <class... Args>
Diagnostic fail(const Code& code, fmt::format_string<Args...> f, Args&&... args) {
  Diagnostic d;
  d.code = std::string(code.id);
  d.name = std::string(code.name);
  d.message = fmt::format(f, std::forward<Args>(args)...);
  return d;
}

/// Several lines of text: `error[TS0003]: message`, place, expected, found, notes, help.
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
