// `tessera examples`: kernels to learn from, and configurations that are known to be good.

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arch/arch.h"
#include "base/files.h"
#include "base/text.h"
#include "bridge/bridge.h"
#include "commands/common/example_catalogue.h"
#include "numeric/dtype.h"
#include "realize/common/kernel_files.h"
#include "toolchain/toolchain.h"

namespace tessera::commands {
namespace {

namespace fs = std::filesystem;
using examples::Asked;
using examples::Known;
using rules::Example;

inline constexpr Code needs_what{"TS0057", "input.examples_needs_what"};
inline constexpr Code no_such_example{"TS0058", "input.no_such_example"};
inline constexpr Code bad_configuration{"TS0059", "input.bad_configuration"};

/// FILE.py of FILE.py:KERNEL.
std::string file_of(const Example& e) {
  return e.path.substr(0, e.path.find(':'));
}

/// One path, with every row of the index that has it.
Outcome show_source(const std::vector<Example>& rows) {
  const Example& e = rows.front();
  Outcome out;
  out.data = {{"schema", "tessera.example/1"}, {"sources", Json::array()}};
  out.text = fmt::format("{}\n  tree   {}\n", e.path, e.root);
  for (const Example& row : rows) {
    out.data["sources"].push_back(to_json(row));
    out.text += fmt::format("  for    {} ({}; {}): {}\n", row.rule, join(row.precisions, ", "),
                            join(row.archs, ", "), row.shows);
  }
  const fs::path cutlass = toolchain::locate(bridge::find_python()).cutlass;
  const fs::path file = cutlass / e.path;
  std::string text;
  if (e.root == "tessera") {
    text = std::string(realize::kernel_file(fs::path(file_of(e)).filename().string()));
  } else if (!cutlass.empty() && fs::is_regular_file(file)) {
    text = read_file(file);
    out.data["file"] = file.string();
    out.text += fmt::format("  file   {}\n", file.string());
  } else {
    const std::string why = cutlass.empty()
                                ? "CUTLASS is not installed here"
                                : "the installed CUTLASS has no such file; its repository has it";
    out.data["absent"] = why;
    out.text += fmt::format("  file   {}: github.com/NVIDIA/cutlass, {}\n", why, e.path);
  }
  out.data["text"] = text;
  if (!text.empty()) out.text += "\n" + text;
  return out;
}

Outcome show_configuration(const Known& k) {
  Outcome out;
  out.data = {{"schema", "tessera.example/1"}, {"configuration", named(k)}};
  out.text = fmt::format(
      "{} {} {} on {} ({})\n  pattern   {}\n  extents   {}\n  realizer  {}\n  config    {}\n"
      "  knobs     {}\n  time      {:.4g} ms\n  from      {}\n",
      k.name(), k.rule, k.precision, k.device, k.arch, k.summary, k.extents.dump(), k.realizer,
      k.config.dump(), k.knobs.dump(), k.ms, k.origin);
  return out;
}

Result<Outcome> show(const Catalogue& c, const std::string& what) {
  std::vector<std::string> names;
  std::vector<Example> rows;
  for (const Example& e : c.index.examples()) {
    const std::string name = fs::path(e.path).filename().string();
    names.push_back(name);
    // A file's name alone may be that of several; the first is meant.
    if ((what == e.path || what == name || what == file_of(e)) &&
        (rows.empty() || rows.front().path == e.path))
      rows.push_back(e);
  }
  if (!rows.empty()) return show_source(rows);
  for (const Known& k : c.configurations.known) {
    if (what == k.name()) return show_configuration(k);
    names.push_back(k.name());
  }
  Diagnostic d = fail(no_such_example, "there is no example `{}`", what)
                     .expect("a path, or a configuration's name, as `examples search` lists them");
  if (const std::string near = nearest(what, names); !near.empty())
    d.helps.push_back(fmt::format("did you mean `{}`?", near));
  return error(std::move(d));
}

Diagnostic misread(const std::string& what) {
  return fail(bad_configuration, "the configuration cannot be compared: {}", what)
      .expect(
          "an object with `rule`, `precision`, `arch`, `realizer`, `config` (an object), and where "
          "wanted `extents` (an object of positive integers)");
}

/// What `asked` names is something that there is. Empty fields are no names.
Status known_names(const Asked& asked) {
  std::vector<std::string> names;
  for (const rules::Rule* r : rules::all()) names.emplace_back(r->name);
  if (!asked.rule.empty() && std::find(names.begin(), names.end(), asked.rule) == names.end()) {
    return error(fail(bad_configuration, "there is no rule `{}`", asked.rule)
                     .expect("one of {}", join(names, ", ")));
  }
  if (!asked.arch.empty()) TESSERA_CHECK(arch::find(asked.arch));
  if (!asked.precision.empty()) TESSERA_CHECK(parse_precision(asked.precision));
  return {};
}

Result<Asked> read_asked(const std::string& file) {
  const Json j =
      fs::is_regular_file(file) ? try_parse_json(read_file(file)) : Json(Json::value_t::discarded);
  if (!j.is_object()) return error(misread(fmt::format("`{}` is no file of JSON", file)));
  Asked asked;
  for (const auto& [name, field] : {std::pair("rule", &asked.rule),
                                    {"precision", &asked.precision},
                                    {"arch", &asked.arch},
                                    {"realizer", &asked.realizer}}) {
    if (!j.contains(name) || !j.at(name).is_string())
      return error(misread(fmt::format("`{}` is missing or no text", name)));
    *field = j.at(name);
  }
  asked.config = j.value("config", Json());
  asked.extents = j.value("extents", Json::object());
  if (!asked.config.is_object() || !asked.extents.is_object())
    return error(misread("`config` or `extents` is no object"));
  for (const auto& [name, value] : asked.extents.items()) {
    if (!value.is_number_integer() || value.get<int64_t>() <= 0)
      return error(misread(fmt::format("extent `{}` is no positive integer", name)));
  }
  TESSERA_CHECK(known_names(asked));
  return asked;
}

std::string said(const examples::Grounding& g, const Asked& asked) {
  using Verdict = examples::Grounding::Verdict;
  switch (g.verdict) {
    case Verdict::known:
      return "it is a configuration that is known to be good";
    case Verdict::mixed:
      return "each of its values is known to be good, not all of them together";
    case Verdict::unseen:
      return "a value of it is in no configuration that is known to be good";
    case Verdict::gap:
      break;
  }
  return fmt::format("no configuration of {} is known to be good for {} {} on {}", asked.realizer,
                     asked.rule, asked.precision, asked.arch);
}

Result<Outcome> check(const Catalogue& c, const std::string& file) {
  TESSERA_TRY(asked, read_asked(file));
  const examples::Grounding g = examples::ground(asked, c.configurations.known);
  Outcome out;
  out.data = {{"schema", "tessera.examples_checked/1"},
              {"verdict", name_of(g.verdict)},
              {"nearest", g.nearest == nullptr ? Json(nullptr) : named(*g.nearest)},
              {"differences", Json::array()},
              {"not_compared", g.not_compared}};
  std::vector<std::vector<std::string>> rows;
  for (const examples::Difference& d : g.differences) {
    out.data["differences"].push_back({{"field", d.field},
                                       {"given", d.given},
                                       {"known", d.known},
                                       {"known_elsewhere", d.elsewhere}});
    rows.push_back(
        {d.field, d.given.dump(), d.known.dump(), d.elsewhere ? "in others" : "in none"});
  }
  out.text = fmt::format("{}: {}\n", name_of(g.verdict), said(g, asked));
  if (g.nearest != nullptr) out.text += "\nthe nearest:\n" + show_configuration(*g.nearest).text;
  if (!rows.empty())
    out.text += "\n" + render_table({"field", "given", "nearest has", "the given value is"}, rows);
  if (!g.not_compared.empty())
    out.text += fmt::format("\nnot compared, as the nearest does not state it: {}\n",
                            join(g.not_compared, ", "));
  const bool grounded = g.verdict == examples::Grounding::Verdict::known ||
                        g.verdict == examples::Grounding::Verdict::mixed;
  out.exit = grounded ? Exit::ok : Exit::undecided;
  return out;
}

/// "m=4096" for each extent.
Result<Json> extents_of(const Json& given) {
  Json out = Json::object();
  for (const Json& one : given) {
    const auto text = one.get<std::string>();
    const std::size_t at = text.find('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const char* from = at == std::string::npos ? end : text.data() + at + 1;
    if (const auto read = std::from_chars(from, end, value);
        from == end || read.ec != std::errc() || read.ptr != end || value <= 0) {
      return error(
          fail(needs_what, "`{}` is no extent", text).expect("NAME=NUMBER, as --shape m=4096"));
    }
    out[text.substr(0, at)] = value;
  }
  return out;
}

Result<Outcome> run(const Json& arguments, Context&) {
  const std::string action = arguments.at("action");
  const std::string what = arguments.value("what", "");
  Asked asked{.rule = arguments.value("rule", ""),
              .precision = arguments.value("precision", ""),
              .arch = arguments.value("arch", ""),
              .realizer = arguments.value("realizer", "")};
  TESSERA_TRY(extents, extents_of(arguments.value("shape", Json::array())));
  asked.extents = extents;
  TESSERA_CHECK(known_names(asked));
  if (what.empty() && action != "search") {
    return error(fail(needs_what, "`tessera examples {}` needs to know what", action)
                     .expect("{}", action == "show" ? "a path, or a configuration's name"
                                                    : "a file of JSON with a configuration"));
  }
  TESSERA_TRY(collected, collect_examples(arguments.value("registry", "")));
  TESSERA_TRY(out, action == "search" ? Result<Outcome>(search_examples(collected, asked, what))
                   : action == "show" ? show(collected, what)
                                      : check(collected, what));
  for (const std::string& note : collected.index.notes()) out.text += note + "\n";
  for (const std::string& note : collected.configurations.notes) out.text += note + "\n";
  return out;
}

}  // namespace

using Type = Parameter::Type;

extern const Command examples;
const Command examples = {
    .name = "examples",
    .doc = "kernels to learn from, and configurations that are known to be good",
    .details =
        "search [WORDS]: CUTLASS's examples, tessera's own kernel files, and configurations that "
        "won, those of the results that come with tessera and of your registry, the nearest to "
        "--shape first; and what has no example.\n"
        "show WHAT: a path or a configuration's name, as search lists them, with the text where it "
        "is here.\n"
        "check FILE: how a configuration differs from the nearest that is known to be good, field "
        "by field. FILE is JSON: {\"rule\", \"precision\", \"arch\", \"realizer\", "
        "\"config\": {}, \"extents\": {}}. Exit code 2: a value of it is in none, or nothing is "
        "known of its realizer there.",
    .parameters = {{.type = Type::text,
                    .name = "action",
                    .doc = "what to do",
                    .positional = true,
                    .required = true,
                    .choices = {"search", "show", "check"}},
                   {.type = Type::text,
                    .name = "what",
                    .doc = "words, a path or a name, or a file",
                    .positional = true,
                    .words = true,
                    .names = Parameter::Names::input,
                    .only_when = "check"},
                   {.type = Type::text, .name = "rule", .doc = "of search: this rule alone"},
                   {.type = Type::text, .name = "precision", .doc = "of search: this one alone"},
                   {.type = Type::text, .name = "arch", .doc = "of search: this one alone"},
                   {.type = Type::text, .name = "realizer", .doc = "of search: this one alone"},
                   {.type = Type::list,
                    .name = "shape",
                    .doc = "NAME=NUMBER, as m=4096: configurations of near extents come first"},
                   {.type = Type::text,
                    .name = "registry",
                    .doc = "registry file (default: the user's)",
                    .names = Parameter::Names::place}},
    .run = run,
    .schemas = {"tessera.examples_found/1", "tessera.example/1", "tessera.examples_checked/1"},
};

}  // namespace tessera::commands
