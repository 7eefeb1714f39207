#include "attempt/source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"

namespace tessera::attempt {
namespace {

inline constexpr Code no_such_file{"TS0001", "input.no_such_file"};
inline constexpr Code bad_tunable{"TS0049", "input.bad_tunable"};
inline constexpr Code unknown_ending{"TS0050", "input.unknown_source"};

constexpr std::string_view mark = "tunable:";

Diagnostic unreadable(const std::string& file, int line, const std::string& text) {
  return fail(bad_tunable, "this tunable cannot be read")
      .but_found("{}", text)
      .expect("NAME = VALUE, VALUE, ... with whole numbers")
      .at({.file = file, .line = line, .column = 1})
      .help("// tunable: TILE = 16, 32, 64");
}

bool is_name(const std::string& name) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), word);
}

/// What follows the mark on this line; nothing where the line is no declaration.
std::optional<std::string> declared(const std::string& line, Language language) {
  const std::string text = trim(line);
  const std::string_view comment = language == Language::tile ? "#" : "//";
  if (!text.starts_with(comment)) return std::nullopt;
  const std::string rest = trim(text.substr(comment.size()));
  if (!rest.starts_with(mark)) return std::nullopt;
  return trim(rest.substr(mark.size()));
}

Result<Tunable> tunable_of(const std::string& file, int line, const std::string& text) {
  const std::size_t equals = text.find('=');
  Tunable t{.name = trim(text.substr(0, equals)), .values = {}};
  if (equals == std::string::npos || !is_name(t.name)) return error(unreadable(file, line, text));
  for (const std::string& part : split(text.substr(equals + 1), ',')) {
    const std::string digits = trim(part);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || end != digits.data() + digits.size() || digits.empty())
      return error(unreadable(file, line, text));
    if (std::find(t.values.begin(), t.values.end(), value) == t.values.end())
      t.values.push_back(value);
  }
  return t;
}

Status read_tunables(SourceFile& out) {
  std::size_t all = 1;
  int line = 0;
  for (const std::string& text : split(out.text, '\n')) {
    ++line;
    const auto rest = declared(text, out.language);
    if (!rest) continue;
    TESSERA_TRY(tunable, tunable_of(out.file, line, *rest));
    for (const Tunable& other : out.tunables) {
      if (other.name != tunable.name) continue;
      return error(fail(bad_tunable, "the tunable {} is declared twice", tunable.name)
                       .at({.file = out.file, .line = line, .column = 1})
                       .help("give all of its values on one line"));
    }
    all *= tunable.values.size();
    if (all > most_variants) {
      return error(fail(bad_tunable, "the tunables have too many combinations")
                       .expect("{} at most", most_variants)
                       .but_found("{} with {}", all, tunable.name)
                       .at({.file = out.file, .line = line, .column = 1})
                       .help("give fewer values, and others in another try"));
    }
    out.tunables.push_back(std::move(tunable));
  }
  return {};
}

}  // namespace

std::string_view name_of(Language language) {
  constexpr std::array<std::string_view, 3> names = {"tile", "cuda", "cxx"};
  return names.at(static_cast<std::size_t>(language));
}

Result<SourceFile> read_source(const std::string& given) {
  const std::size_t colon = given.rfind(".py:");
  const bool named = colon != std::string::npos && !std::filesystem::is_regular_file(given);
  const std::string file = named ? given.substr(0, colon + 3) : given;
  if (!std::filesystem::is_regular_file(file)) {
    return error(fail(no_such_file, "there is no file `{}`", file)
                     .expect("a kernel: FILE.py of the tile language, FILE.cu, or FILE.cpp")
                     .help("`tessera try MODEL.py PATTERN --skeleton` writes one to start from"));
  }
  SourceFile out{.file = given};
  if (named) out.kernel = given.substr(colon + 4);
  const std::string ending = std::filesystem::path(file).extension();
  if (ending == ".py") {
    out.language = Language::tile;
  } else if (ending == ".cu") {
    out.language = Language::cuda;
  } else if (ending == ".cpp" || ending == ".cc" || ending == ".cxx") {
    out.language = Language::cxx;
  } else {
    return error(fail(unknown_ending, "the ending of `{}` does not say what it is", file)
                     .expect(".py (tile language), .cu (CUDA C++), .cpp (C++ for the host)")
                     .but_found("`{}`", ending)
                     .help("rename the file"));
  }
  out.text = read_file(file);
  TESSERA_CHECK(read_tunables(out));
  return out;
}

std::vector<Json> combinations(const std::vector<Tunable>& tunables) {
  std::vector<Json> out = {Json::object()};
  for (const Tunable& t : tunables) {
    std::vector<Json> longer;
    for (const Json& before : out) {
      for (const int64_t value : t.values) {
        longer.push_back(before);
        longer.back()[t.name] = value;
      }
    }
    out = std::move(longer);
  }
  return out;
}

}  // namespace tessera::attempt
