#include "commands/common/example_catalogue.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "arch/arch.h"
#include "base/text.h"
#include "numeric/dtype.h"

namespace tessera::commands {

namespace fs = std::filesystem;
using examples::Asked;
using examples::Known;
using rules::Example;

namespace {

bool has(const std::vector<std::string>& list, const std::string& word) {
  return word.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

/// Every word occurs in one of the texts.
bool mentions(const std::string& words, const std::vector<std::string>& texts) {
  const std::string all = join(texts, " ");
  const std::vector<std::string> wanted = split(words, ' ');
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const std::string& w) { return all.find(w) != std::string::npos; });
}

/// Rules, precisions and architectures within the filter of which neither list has any.
std::vector<std::string> gaps(const Catalogue& c, const Asked& asked) {
  std::vector<std::string> out;
  const auto covered = [&](const std::string& rule, const std::string& precision,
                           const std::string& arch) {
    return std::any_of(c.index.examples().begin(), c.index.examples().end(),
                       [&](const Example& e) {
                         return e.rule == rule && has(e.precisions, precision) &&
                                has(e.archs, arch);
                       }) ||
           std::any_of(c.configurations.known.begin(), c.configurations.known.end(),
                       [&](const Known& k) {
                         return k.rule == rule && k.precision == precision && k.arch == arch;
                       });
  };
  for (const rules::Rule* rule : rules::all()) {
    for (const arch::Arch* a : arch::all()) {
      for (const Precision p :
           {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp8}) {
        const std::string r(rule->name);
        const std::string precision(name_of(p));
        const std::string name(a->name);
        const bool wanted = (asked.rule.empty() || asked.rule == r) &&
                            (asked.precision.empty() || asked.precision == precision) &&
                            (asked.arch.empty() || asked.arch == name);
        if (wanted && !covered(r, precision, name))
          out.push_back(fmt::format("{} {} on {}", r, precision, name));
      }
    }
  }
  return out;
}

std::string in_short(const Json& object) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : object.items()) parts.push_back(name + "=" + value.dump());
  return join(parts, " ");
}

}  // namespace

Result<Catalogue> collect_examples(const std::string& place) {
  Catalogue out{.index = rules::ExampleIndex(rules::examples_folder()),
                .configurations = examples::measured(rules::knowledge_folder("configurations"))};
  const fs::path file = place.empty() ? registry::default_place() : fs::path(place);
  // Looking at examples makes no registry.
  if (!fs::is_regular_file(file)) return out;
  TESSERA_TRY(opened, registry::Registry::open(file));
  TESSERA_TRY(entries, opened->list(""));
  for (Known& k : examples::learned(entries)) out.configurations.known.push_back(std::move(k));
  return out;
}

Json to_json(const Example& e) {
  return {{"rule", e.rule},   {"precisions", e.precisions},
          {"archs", e.archs}, {"kind", e.kind},
          {"root", e.root},   {"path", e.path},
          {"shows", e.shows}};
}

Json named(const Known& k) {
  Json j = {{"name", k.name()}};
  j.update(examples::to_json(k));
  return j;
}

Outcome search_examples(const Catalogue& c, const Asked& asked, const std::string& words) {
  Outcome out;
  out.data = {{"schema", "tessera.examples_found/1"},
              {"sources", Json::array()},
              {"configurations", Json::array()},
              {"gaps", gaps(c, asked)}};
  std::vector<std::vector<std::string>> rows;
  for (const Example& e : c.index.examples()) {
    if ((!asked.rule.empty() && e.rule != asked.rule) || !has(e.precisions, asked.precision) ||
        !has(e.archs, asked.arch) || !mentions(words, {e.path, e.shows, e.kind, e.root}))
      continue;
    out.data["sources"].push_back(to_json(e));
    rows.push_back({e.rule, join(e.precisions, ","), join(e.archs, ","), e.kind, e.root, e.path});
  }
  out.text = render_table({"rule", "precisions", "archs", "kind", "tree", "path"}, rows);
  rows.clear();
  for (const Known* k : examples::nearest(asked, c.configurations.known)) {
    // A name asks for itself alone, where a check takes relatives.
    if ((!asked.precision.empty() && k->precision != asked.precision) ||
        (!asked.realizer.empty() && k->realizer != asked.realizer) ||
        !mentions(words, {k->realizer, k->summary, k->device, k->config.dump()}))
      continue;
    out.data["configurations"].push_back(named(*k));
    rows.push_back({k->name(), k->rule, k->precision, in_short(k->extents), k->realizer,
                    in_short(k->config), fmt::format("{:.4g}", k->ms), k->device, k->origin});
  }
  out.text += "\n" + render_table({"name", "rule", "precision", "extents", "realizer",
                                   "configuration", "ms", "device", "from"},
                                  rows);
  const auto missing = out.data["gaps"].get<std::vector<std::string>>();
  if (!missing.empty()) out.text += fmt::format("\nno example of: {}\n", join(missing, "; "));
  return out;
}

}  // namespace tessera::commands
