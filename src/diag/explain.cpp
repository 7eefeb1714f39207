#include "diag/explain.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/text.h"
#include "diag/explain_families.h"

namespace tessera {
namespace {

inline constexpr Code unknown_code{"TS0048", "input.unknown_code"};

constexpr CodeFamily families[] = {
    {"TS00", "input: files, options, devices, places"},
    {"TS01", "layout: the algebra of shapes and strides"},
    {"TS02", "graph and plan: tracing, rules, composed modules"},
    {"TS03", "build: compilers, headers, the cache, loading of kernels"},
    {"TS04", "realize and tile: why a kernel is not written"},
    {"TS05", "verify and measure: results and times"},
    {"TS06", "registry and store: what was learned, and its file"},
    {"TS07", "processes, protocol, report pages"},
    {"TS08", "language: the text of kernel files, and the integers that they compute with"},
    {"TS09", "faults of tessera itself"},
};

constexpr std::size_t line_width = 78;

std::string folded(std::string_view text, std::size_t indent) {
  std::string out, line;
  const std::string margin(indent, ' ');
  for (const std::string& word : split(paragraph(text), ' ')) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > line_width) {
      out += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + margin + line + "\n";
}

// A code of the same family first: TS0207 is meant to be near TS0206, not TS0007.
std::string nearest_code(std::string_view what, const std::string& code) {
  std::vector<std::string> relatives, all;
  for (const Explanation& e : explanations()) {
    if (code.size() > 4 && e.code.substr(0, 4) == std::string_view(code).substr(0, 4))
      relatives.emplace_back(e.code);
    all.emplace_back(e.code);
    all.emplace_back(e.name);
  }
  for (const std::string& word : {code, std::string(what)}) {
    if (std::string near = nearest(word, relatives); !near.empty()) return near;
    if (std::string near = nearest(word, all); !near.empty()) return near;
  }
  return "";
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::span<const CodeFamily> code_families() {
  return families;
}

const std::vector<Explanation>& explanations() {
  static const std::vector<Explanation> all = [] {
    std::vector<Explanation> out;
    for (const auto family :
         {explained_input(), explained_layout(), explained_graph(), explained_build(),
          explained_realize(), explained_verify(), explained_registry(), explained_language(),
          explained_term(), explained_lower(), explained_process(), explained_core(),
          explained_simulate(), explained_smt(), explained_elaborate(), explained_check(),
          explained_call(), explained_mind()})
      out.insert(out.end(), family.begin(), family.end());
    std::sort(out.begin(), out.end(),
              [](const Explanation& a, const Explanation& b) { return a.code < b.code; });
    return out;
  }();
  return all;
}

Result<std::vector<Explanation>> explanations_of(std::string_view what) {
  const std::string code = upper(what);
  std::vector<Explanation> found;
  for (const Explanation& e : explanations()) {
    if (e.name == what || (code.size() > 1 && e.code.starts_with(code))) found.push_back(e);
  }
  if (!found.empty()) return found;
  Diagnostic d = fail(unknown_code, "there is no code `{}`", what)
                     .expect(
                         "a code (TS0202), its name (graph.untraceable) or the first letters "
                         "of a family's codes (TS02)");
  if (const std::string near = nearest_code(what, code); !near.empty())
    d.helps.push_back(fmt::format("did you mean `{}`?", near));
  d.helps.emplace_back("`tessera explain` lists all codes");
  return error(std::move(d));
}

std::string paragraph(std::string_view text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    const std::string words = trim(line);
    if (!words.empty()) out += (out.empty() ? "" : " ") + words;
  }
  return out;
}

std::string example_text(const Explanation& e) {
  std::string_view text = e.example;
  while (text.starts_with('\n')) text.remove_prefix(1);
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return std::string(text);
}

std::string to_text(const Explanation& e) {
  std::string out = fmt::format("{} {}\n", e.code, e.name);
  out += "\nWhat it means\n" + folded(e.means, 2);
  out += "\nWhy it comes up\n" + folded(e.arises, 2);
  out += "\nWhat to do\n" + folded(e.remedy, 2);
  out += "\nExample\n";
  for (const std::string& line : split(example_text(e), '\n'))
    out += line.empty() ? "\n" : "  " + line + "\n";
  return out;
}

}  // namespace tessera
