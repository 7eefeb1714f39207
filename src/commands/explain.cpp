// `tessera explain CODE`: what a diagnostic's code means, why it comes up, and what to do.
#include "diag/explain.h"

#include <fmt/format.h>

#include "commands/commands.h"

namespace tessera::commands {
namespace {

Json to_json(const Explanation& e) {
  return {{"code", e.code},
          {"name", e.name},
          {"means", paragraph(e.means)},
          {"arises", paragraph(e.arises)},
          {"remedy", paragraph(e.remedy)},
          {"example", example_text(e)}};
}

// A line a code, below its family's title.
std::string listed(const std::vector<Explanation>& found) {
  std::string out;
  for (const CodeFamily& family : code_families()) {
    std::string lines;
    for (const Explanation& e : found) {
      if (e.code.starts_with(family.prefix)) lines += fmt::format("  {}  {}\n", e.code, e.name);
    }
    if (lines.empty()) continue;
    out += fmt::format("{}{}  {}\n{}", out.empty() ? "" : "\n", family.prefix, family.title, lines);
  }
  return out + "\n`tessera explain CODE` says what one means and what to do.\n";
}

Result<Outcome> run(const Json& arguments, Context&) {
  const std::string given = arguments.value("code", "");
  TESSERA_TRY(found, explanations_of(given.empty() ? "TS" : given));
  Outcome out;
  out.data = {
      {"schema", "tessera.explained/1"}, {"families", Json::array()}, {"codes", Json::array()}};
  for (const CodeFamily& f : code_families())
    out.data["families"].push_back({{"prefix", f.prefix}, {"title", f.title}});
  for (const Explanation& e : found) out.data["codes"].push_back(to_json(e));
  out.text = found.size() == 1 ? to_text(found.front()) : listed(found);
  return out;
}

}  // namespace

extern const Command explain;
const Command explain = {
    .name = "explain",
    .doc = "what an error code means, why it comes up and what to do",
    .details =
        "tessera explain TS0202: one code; its name (graph.untraceable) does as well.\n"
        "tessera explain TS02: the codes of a family. Without a code: all of them.",
    .parameters = {{.type = Parameter::Type::text,
                    .name = "code",
                    .doc = "a code, its name, or the first letters of a code",
                    .positional = true}},
    .run = run,
    .schemas = {"tessera.explained/1"},
};

}  // namespace tessera::commands
