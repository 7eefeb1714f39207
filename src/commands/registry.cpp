// `tessera registry`: what has been learned on this and other machines.
#include "registry/registry.h"

#include <filesystem>
#include <fmt/format.h>

#include "base/files.h"
#include "base/process.h"
#include "base/text.h"
#include "bridge/bridge.h"
#include "commands/commands.h"
#include "toolchain/toolchain.h"

namespace tessera::commands {
namespace {

inline constexpr Code needs_what{"TS0044", "input.registry_needs_what"};
inline constexpr Code unreadable_export{"TS0045", "input.unreadable_export"};

std::string milliseconds(const registry::Entry& e) {
  return e.accepted() ? fmt::format("{:.4g}", e.winners.front().evidence.ms) : "";
}

std::string shortened(const std::string& text, std::size_t limit) {
  return text.size() <= limit ? text : text.substr(0, limit - 3) + "...";
}

/// What entries are held against: this machine, and the search that would be asked for.
struct Machine {
  registry::Here here;
  std::string device;   // "": not known
  std::string unknown;  // why library versions and device are not known
};

Machine this_machine(const std::string& effort) {
  const std::filesystem::path python = bridge::find_python();
  Machine m{
      .here = {.toolchain = toolchain::locate(python).fingerprint(), .asked = {.effort = effort}}};
  try {
    const Finished done =
        tessera::run({.argv = {python.string(), "-m", "tessera.tracing.library_versions"},
                      .env = {{"PYTHONPATH", bridge::python_path().string()}}},
                     std::chrono::seconds(120));
    // Warnings of packages share the output; the answer is its last line.
    const Json said = try_parse_json(split(trim(done.output), '\n').back());
    if (done.ok() && said.is_object()) {
      m.here.libraries = said.value("libraries", Json::object());
      m.device = said.value("device_name", "");
    } else {
      m.unknown = fmt::format("Python did not say (exit {})", done.exit_code);
    }
  } catch (const std::system_error& e) {
    m.unknown = e.what();
  }
  return m;
}

struct Use {
  std::string name;  // "reuse", or what keeps it from that, in a word or two
  std::string why;
};

Use use_here(const registry::Entry& e, const Machine& m) {
  if (!m.device.empty() && e.key.device != m.device)
    return {"other device", "made on another device: " + e.key.device};
  if (e.key.policy != registry::measuring_policy())
    return {"other policy", "its times were taken in another way: " + e.key.policy};
  const registry::Judged judged = judge(e, m.here);
  if (judged.standing == registry::Standing::holds) return {"reuse", ""};
  return {std::string(name_of(judged.standing)), judged.why};
}

std::string origin_of(const registry::Entry& e) {
  const registry::Provenance& p = e.provenance;
  if (p.imported) return fmt::format("imported from {} on {}", p.file, p.when);
  return p.file.empty() ? "this machine"
                        : fmt::format("this machine, begun with what {} had on {}", p.file, p.when);
}

std::string in_short(const registry::Thoroughness& t) {
  if (t.passes.empty()) return "unknown";
  const registry::Pass& p = t.passes.back();
  return p.complete ? p.effort : fmt::format("{:.3g} s of {}", p.seconds_allowed, p.effort);
}

void tell_unknown(Outcome& out, const Machine& m) {
  if (m.unknown.empty()) return;
  out.text +=
      fmt::format("device and library versions of this machine are not compared: {}\n", m.unknown);
}

Json json_of(const registry::Entry& e, const Use& use) {
  Json j = to_json(e);
  j["here"] = {{"reuse", use.name == "reuse"}, {"what", use.name}, {"why", use.why}};
  return j;
}

Result<Outcome> list(registry::Registry& r, const std::string& filter, const std::string& effort) {
  TESSERA_TRY(entries, r.list(filter));
  Outcome out;
  out.data = {{"schema", "tessera.registry_list/1"}, {"entries", Json::array()}};
  const Machine m = entries.empty() ? Machine{} : this_machine(effort);
  std::vector<std::vector<std::string>> rows;
  for (const registry::Entry& e : entries) {
    const Use use = use_here(e, m);
    Json j = json_of(e, use);
    j.erase("candidate");  // sources are long; `show` has them
    out.data["entries"].push_back(std::move(j));
    rows.push_back({e.key.hash().substr(0, 12), std::string(e.status()), e.rule, e.key.precision,
                    e.arch, e.key.device, milliseconds(e), e.realizer(), in_short(e.search),
                    e.provenance.imported ? "imported" : "own", use.name,
                    fmt::format("{}", e.negative.size()), e.created,
                    shortened(e.key.signature, 60)});
  }
  out.text =
      render_table({"hash", "status", "rule", "precision", "arch", "device", "ms", "realizer",
                    "search", "origin", "here", "failed trials", "created", "signature"},
                   rows);
  out.text += fmt::format("{} entries\n", entries.size());
  tell_unknown(out, m);
  return out;
}

std::string versions(const Json& libraries) {
  std::vector<std::string> parts;
  for (const auto& [name, version] : libraries.items())
    parts.push_back(name + " " + (version.is_string() ? version.get<std::string>() : "unknown"));
  return parts.empty() ? "unknown" : join(parts, ", ");
}

Result<Outcome> show(registry::Registry& r, const std::string& hash, const std::string& effort) {
  TESSERA_TRY(e, r.show(hash));
  const Machine m = this_machine(effort);
  const Use use = use_here(e, m);
  Outcome out;
  out.data = {{"schema", "tessera.registry_entry/1"}, {"entry", json_of(e, use)}};
  out.text = fmt::format(
      "{} {} ({})\n  signature  {}\n  precision  {}\n  device     {} ({})\n  policy     {}\n",
      e.rule, e.key.hash(), e.status(), e.key.signature, e.key.precision, e.key.device, e.arch,
      e.key.policy);
  out.text += fmt::format(
      "  toolchain  {}\n  libraries  {}\n  created    {}\n  origin     {}\n  search     {}\n",
      e.toolchain, versions(e.libraries), e.created, origin_of(e), to_text(e.search));
  out.text += fmt::format("  here       {} (asked: {})\n",
                          use.why.empty() ? "reused" : "not reused: " + use.why, effort);
  if (e.accepted()) {
    const Json stored = to_json(e);
    const std::string binary = stored.at("binary_hash");
    out.text += fmt::format(
        "  kernel     {} ({}), binary {}\n  config     {}\n  launch     {}\n  evidence   {}\n",
        e.realizer(), e.kind(), binary.empty() ? "none" : binary, stored.at("config").dump(),
        stored.at("launch").dump(), stored.at("evidence").dump());
  }
  for (const Json& t : e.negative) {
    out.text += fmt::format("  failed     {}: {}: {}\n", t.value("label", ""),
                            t.value("outcome", ""), t.value("reason", ""));
  }
  tell_unknown(out, m);
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

/// Lists and objects in one another, outside of text; a reader that recurses must not be led too
/// deep.
bool nests_deeper(std::string_view json, int limit) {
  int depth = 0;
  bool text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (text && c == '\\') {
      ++i;
      continue;
    }
    if (c == '"') text = !text;
    if (text) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > limit) return true;
  }
  return false;
}

Result<Json> read_export(const std::string& file) {
  constexpr std::uintmax_t most_bytes = 512u << 20;
  constexpr int most_depth = 64;
  if (std::filesystem::file_size(file) > most_bytes) {
    return error(fail(unreadable_export, "`{}` is larger than 512 MiB", file)
                     .help("export a part of the registry: `tessera registry export FILTER`"));
  }
  const std::string text = read_file(file);
  Json entries =
      nests_deeper(text, most_depth) ? Json(Json::value_t::discarded) : try_parse_json(text);
  if (entries.is_discarded()) {
    return error(fail(unreadable_export, "`{}` is not JSON, or nested too deep", file)
                     .help("make one with `tessera registry export -o FILE.json`"));
  }
  return entries;
}

Result<Outcome> import_from(registry::Registry& r, const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) {
    return error(fail(unreadable_export, "there is no file `{}`", file)
                     .help("make one with `tessera registry export -o FILE.json`"));
  }
  TESSERA_TRY(entries, read_export(file));
  TESSERA_TRY(done, r.import_entries(entries, std::filesystem::path(file).filename().string()));
  Outcome out;
  out.data = {{"schema", "tessera.registry_import/2"},
              {"file", file},
              {"read", done.read},
              {"taken", done.taken},
              {"sources_left_out", done.sources},
              {"failed_left_out", done.failed}};
  out.text = fmt::format(
      "{} of {} entries taken from {}; each is built, verified and timed here "
      "before it is used\n",
      done.taken, done.read, file);
  if (const int others = done.read - done.taken - done.failed; others > 0)
    out.text += fmt::format("{} were here already, as good or better\n", others);
  if (done.failed > 0) {
    out.text += fmt::format("{} without a kernel were left out: what failed elsewhere may pass\n",
                            done.failed);
  }
  if (done.sources > 0) {
    out.text += fmt::format(
        "{} source texts and library calls were left out: the realizers here "
        "make them again\n",
        done.sources);
  }
  return out;
}

/// Everything under the cache's folder can be made again.
Outcome prune_kernels() {
  namespace fs = std::filesystem;
  const fs::path cache = cache_home();
  int64_t files = 0;
  int64_t bytes = 0;
  for (const char* part : {"kernels", "resizes", "extension", "logs"}) {
    if (!fs::is_directory(cache / part)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(cache / part)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      bytes += static_cast<int64_t>(entry.file_size());
    }
    fs::remove_all(cache / part);
  }
  Outcome out;
  out.data = {{"schema", "tessera.registry_prune/1"},
              {"what", "kernels"},
              {"removed", files},
              {"bytes", bytes}};
  out.text = fmt::format("{} files of {:.1f} MB removed from {}; what is wanted is built again\n",
                         files, static_cast<double>(bytes) * 1e-6, cache.string());
  return out;
}

Result<Outcome> prune(registry::Registry& r, std::string what) {
  if (what == "kernels") return prune_kernels();
  if (what == "stale") what += ":" + toolchain::locate(bridge::find_python()).fingerprint();
  TESSERA_TRY(gone, r.prune(what));
  Outcome out;
  out.data = {{"schema", "tessera.registry_prune/1"}, {"what", what}, {"removed", gone}};
  out.text = fmt::format("{} entries removed\n", gone);
  return out;
}

Result<Outcome> act(registry::Registry& r, const std::string& action, const std::string& what,
                    const Json& arguments) {
  const std::string effort = arguments.at("effort");
  if (action == "list") return list(r, what, effort);
  if (action == "export") return export_to(r, what, arguments.value("output", ""));
  if (what.empty()) {
    const std::string_view needed =
        action == "show"     ? "the start of an entry's hash"
        : action == "import" ? "a file made by `tessera registry export`"
                             : "failed, imported, stale, all, older:30d, hash:PREFIX or kernels";
    return error(
        fail(needs_what, "`tessera registry {}` needs to know what", action).expect("{}", needed));
  }
  if (action == "show") return show(r, what, effort);
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

extern const Command registry = {
    .name = "registry",
    .doc = "what was learned: list, show, export, import, prune",
    .details =
        "list [FILTER]: words and FIELD=VALUE terms (rule, arch, device, precision, status, "
        "realizer, kind, "
        "toolchain, hash).\nshow HASH: one entry with its evidence and failed trials, and why it "
        "would not be reused here.\nexport [FILTER] -o FILE, import FILE: take configurations and "
        "evidence to another machine, which builds, verifies and times them before it uses "
        "them.\nprune WHAT: failed, imported (and not tried yet), stale (another toolchain or "
        "measuring policy), older:30d, hash:PREFIX, all; or kernels: the cache of built kernels, "
        "which are built again when they are wanted.",
    .parameters = {{.type = Type::text,
                    .name = "action",
                    .doc = "what to do",
                    .positional = true,
                    .required = true,
                    .choices = {"list", "show", "export", "import", "prune"}},
                   {.type = Type::text,
                    .name = "what",
                    .doc = "filter, hash, file or what to prune",
                    .positional = true,
                    .words = true,
                    .names = Parameter::Names::input,
                    .only_when = "import"},
                   {.type = Type::text,
                    .name = "output",
                    .doc = "file to export to (default: print)",
                    .names = Parameter::Names::output},
                   {.type = Type::text,
                    .name = "effort",
                    .doc = "the search that list and show hold entries against",
                    .preset = "default",
                    .choices = {"quick", "default", "max"}},
                   {.type = Type::text,
                    .name = "registry",
                    .doc = "registry file (default: the user's)",
                    .names = Parameter::Names::place}},
    .run = run,
    .schemas = {"tessera.registry_list/1", "tessera.registry_entry/1", "tessera.registry/2",
                "tessera.registry_export/1", "tessera.registry_import/2",
                "tessera.registry_prune/1"},
};

}  // namespace tessera::commands
