// `tessera registry`: what has been learned on this and other machines.
#include "registry/registry.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "bridge/bridge.h"
#include "commands/commands.h"
#include "toolchain/toolchain.h"

namespace tessera::commands {
namespace {

inline constexpr Code needs_what{"TS0044", "input.registry_needs_what"};
inline constexpr Code unreadable_export{"TS0045", "input.unreadable_export"};

std::string milliseconds(const registry::Entry& e) {
  const bool known = e.evidence.contains("ms") && e.evidence.at("ms").is_number();
  return known ? fmt::format("{:.4g}", e.evidence.at("ms").get<double>()) : "";
}

std::string shortened(const std::string& text, std::size_t limit) {
  return text.size() <= limit ? text : text.substr(0, limit - 3) + "...";
}

Result<Outcome> list(registry::Registry& r, const std::string& filter) {
  TESSERA_TRY(entries, r.list(filter));
  Outcome out;
  out.data = {{"schema", "tessera.registry_list/1"}, {"entries", Json::array()}};
  std::vector<std::vector<std::string>> rows;
  for (const registry::Entry& e : entries) {
    Json j = to_json(e);
    j.erase("candidate");  // sources are long; `show` and `export` have them
    out.data["entries"].push_back(std::move(j));
    rows.push_back({e.key.hash().substr(0, 12), e.status, e.rule, e.key.precision, e.arch,
                    e.key.device, milliseconds(e), e.realizer, fmt::format("{}", e.negative.size()),
                    e.created, shortened(e.key.signature, 60)});
  }
  out.text = render_table({"hash", "status", "rule", "precision", "arch", "device", "ms",
                           "realizer", "failed trials", "created", "signature"},
                          rows);
  out.text += fmt::format("{} entries\n", entries.size());
  return out;
}

Result<Outcome> show(registry::Registry& r, const std::string& hash) {
  TESSERA_TRY(e, r.show(hash));
  Outcome out;
  out.data = {{"schema", "tessera.registry_entry/1"}, {"entry", to_json(e)}};
  out.text = fmt::format(
      "{} {} ({})\n  signature  {}\n  precision  {}\n  device     {} ({})\n  policy     {}\n",
      e.rule, e.key.hash(), e.status, e.key.signature, e.key.precision, e.key.device, e.arch,
      e.key.policy);
  out.text += fmt::format("  toolchain  {}\n  created    {}\n", e.toolchain, e.created);
  if (e.status == "accepted") {
    out.text += fmt::format(
        "  kernel     {} ({}), binary {}\n  config     {}\n  launch     {}\n  evidence   {}\n",
        e.realizer, e.kind, e.binary_hash.empty() ? "none" : e.binary_hash, e.config.dump(),
        e.launch.dump(), e.evidence.dump());
  }
  for (const Json& t : e.negative) {
    out.text += fmt::format("  failed     {}: {}: {}\n", t.value("label", ""),
                            t.value("outcome", ""), t.value("reason", ""));
  }
  return out;
}

Result<Outcome> export_to(registry::Registry& r, const std::string& filter,
                          const std::string& output) {
  TESSERA_TRY(exported, r.export_entries(filter));
  const std::size_t n = exported.at("entries").size();
  Outcome out;
  const std::string text = exported.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (output.empty()) {
    out.data = std::move(exported);
    out.text = text;
  } else {
    write_file_atomically(output, text);
    out.data = {{"schema", "tessera.registry_export/1"}, {"file", output}, {"entries", n}};
    out.text = fmt::format("{} entries written to {}\n", n, output);
  }
  return out;
}

Result<Outcome> import_from(registry::Registry& r, const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) {
    return error(fail(unreadable_export, "there is no file `{}`", file)
                     .help("make one with `tessera registry export -o FILE.json`"));
  }
  const Json entries = Json::parse(read_file(file), nullptr, false);
  if (entries.is_discarded()) {
    return error(fail(unreadable_export, "`{}` is not JSON", file)
                     .help("make one with `tessera registry export -o FILE.json`"));
  }
  TESSERA_TRY(changed, r.import_entries(entries));
  const std::size_t total = entries.at("entries").size();
  Outcome out;
  out.data = {
      {"schema", "tessera.registry_import/1"}, {"file", file}, {"read", total}, {"taken", changed}};
  out.text = fmt::format(
      "{} of {} entries taken from {}; the others were here already, as good or better\n", changed,
      total, file);
  return out;
}

Result<Outcome> prune(registry::Registry& r, std::string what) {
  if (what == "stale") what += ":" + toolchain::locate(bridge::find_python()).fingerprint();
  TESSERA_TRY(gone, r.prune(what));
  Outcome out;
  out.data = {{"schema", "tessera.registry_prune/1"}, {"what", what}, {"removed", gone}};
  out.text = fmt::format("{} entries removed\n", gone);
  return out;
}

Result<Outcome> act(registry::Registry& r, const std::string& action, const std::string& what,
                    const Json& arguments) {
  if (action == "list") return list(r, what);
  if (action == "export") return export_to(r, what, arguments.value("output", ""));
  if (what.empty()) {
    const std::string_view needed = action == "show" ? "the start of an entry's hash"
                                    : action == "import"
                                        ? "a file made by `tessera registry export`"
                                        : "failed, stale, all, older:30d or hash:PREFIX";
    return error(
        fail(needs_what, "`tessera registry {}` needs to know what", action).expect("{}", needed));
  }
  if (action == "show") return show(r, what);
  if (action == "import") return import_from(r, what);
  return prune(r, what);
}

Result<Outcome> run(const Json& arguments, Context&) {
  const std::string place = arguments.value("registry", "");
  TESSERA_TRY(opened, registry::Registry::open(place.empty() ? registry::default_place()
                                                             : std::filesystem::path(place)));
  TESSERA_TRY(out, act(*opened, arguments.at("action"), arguments.value("what", ""), arguments));
  if (const std::string note = opened->mended(); !note.empty()) {
    Diagnostic d =
        fail(Code{"TS0638", "registry.mended"}, "the registry was damaged and has been mended");
    d.level = Level::warning;
    d.notes.push_back(note);
    out.diagnostics.push_back(std::move(d));
  }
  return out;
}

}  // namespace

using Type = Parameter::Type;

extern const Command registry;
const Command registry = {
    .name = "registry",
    .doc = "what was learned: list, show, export, import, prune",
    .details =
        "list [FILTER]: words and FIELD=VALUE terms (rule, arch, device, precision, status, "
        "realizer, kind, "
        "toolchain, hash).\nshow HASH: one entry with its evidence and failed trials.\nexport "
        "[FILTER] -o FILE, "
        "import FILE: take entries to another machine; the better evidence wins.\nprune WHAT: "
        "failed, stale "
        "(another toolchain or measuring policy), older:30d, hash:PREFIX, all.",
    .parameters =
        {{.type = Type::text,
          .name = "action",
          .doc = "what to do",
          .positional = true,
          .required = true,
          .choices = {"list", "show", "export", "import", "prune"}},
         {.type = Type::text,
          .name = "what",
          .doc = "filter, hash, file or what to prune",
          .positional = true},
         {.type = Type::text, .name = "output", .doc = "file to export to (default: print)"},
         {.type = Type::text, .name = "registry", .doc = "registry file (default: the user's)"}},
    .run = run,
};

}  // namespace tessera::commands
