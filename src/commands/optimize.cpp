#include <filesystem>
#include <fmt/format.h>

#include "base/files.h"
#include "commands/common/html_report.h"
#include "commands/common/mind.h"
#include "commands/common/model.h"
#include "commands/common/optimizing.h"
#include "commands/common/output_folder.h"

namespace tessera::commands {
namespace {

// A page that cannot be written is a warning: the JSON report is there anyway.
void render_html(const std::filesystem::path& folder, Outcome& out) {
  const auto done = write_html(folder / "report.json", folder / "report.html", out);
  if (done) return;
  Diagnostic d = fail(Code{"TS0710", "report.no_html"}, "the HTML report could not be written");
  d.level = Level::warning;
  d.found = done.error().found;
  d.helps.push_back(fmt::format("`tessera report {} --html {}` renders it again", folder.string(),
                                (folder / "report.html").string()));
  out.diagnostics.push_back(std::move(d));
}

inline constexpr Code ended_early{"TS0736", "mind.ended_early"};

/// What a language model found and spent, beside what it ended by.
void tell_mind(const agent::Report& report, bool replay, Outcome& out) {
  out.data["mind"] = to_json(report);
  out.text += to_text(report);
  if (report.failure) {
    out.diagnostics.push_back(*report.failure);
    out.exit = Exit::undecided;
  } else if (!report.stopped.empty() && !replay) {
    Diagnostic d = fail(ended_early, "the language model's part ended early: {}", report.stopped);
    d.level = Level::warning;
    d.helps.emplace_back("the best so far is kept; the same command goes on from there");
    out.diagnostics.push_back(std::move(d));
  }
}

/// A person looked at what the model found and wants no module of it.
Outcome without_module(const agent::Report& report, bool replay) {
  Outcome out;
  out.data = {{"schema", "tessera.optimized/1"}, {"folder", ""}, {"report", Json()}};
  tell_mind(report, replay, out);
  return out;
}

Result<Outcome> run(const Json& arguments, Context& context) {
  const std::string given = arguments.value("output", "");
  if (!given.empty())
    TESSERA_CHECK(writable_output(given));  // at once, else when the name is known
  TESSERA_TRY(mind, mind_of(arguments, context));
  TESSERA_TRY(model, load_model(arguments, context));
  const std::filesystem::path folder =
      given.empty() ? std::filesystem::path("out") / model.stem : std::filesystem::path(given);
  if (given.empty()) TESSERA_CHECK(writable_output(folder));
  constexpr double written_seconds = 2;  // that the module's files and the report take
  const pipeline::Options options = options_for(model, arguments, written_seconds);
  std::optional<agent::Report> thought;
  if (mind) {
    TESSERA_TRY(report, think(arguments, *mind, model, folder, context));
    thought = std::move(report);
    if (!thought->compose) return without_module(*thought, mind->provider == nullptr);
  }
  TESSERA_TRY(done,
              pipeline::optimize(*model.tracer, model.traced, options, pipeline_context(context)));
  Outcome out;
  if (thought) done.report["mind"] = to_json(*thought);
  out.data = {
      {"schema", "tessera.optimized/1"}, {"folder", folder.string()}, {"report", done.report}};
  out.text = report_text(done.report);
  out.diagnostics = done.diagnostics;
  if (thought) tell_mind(*thought, mind->provider == nullptr, out);
  write_file_atomically(folder / "plan.json", done.plan.dump(1));
  write_file_atomically(folder / "report.json", done.report.dump(1));
  write_file_atomically(folder / "report.txt", out.text);
  TESSERA_TRY(exported, model.tracer->call("export_module",
                                           {{"plan", done.plan},
                                            {"folder", std::filesystem::absolute(folder).string()}},
                                           std::chrono::seconds(300)));
  out.data["files"] = exported.value("files", Json::array());
  out.text += fmt::format("\nwritten to {}\n", folder.string());
  render_html(folder, out);
  if (thought) close_archive(*mind, folder, *thought);
  return out;
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> out = model_parameters(tuning_parameters(composing_parameters({
      {.type = Parameter::Type::text,
       .name = "output",
       .doc = "folder for the module and its report (default: out/NAME)",
       .names = Parameter::Names::output},
  })));
  out.front().option = "MODEL";  // --model names a language model
  for (Parameter& p : mind_parameters()) out.push_back(std::move(p));
  return out;
}

}  // namespace

extern const Command optimize = {
    .name = "optimize",
    .doc = "make a module faster: find, write, verify, tune and compose kernels for it",
    .details =
        "Ctrl-C (or SIGTERM, or a closed terminal) stops the search and keeps the best so far, "
        "verified and written as always, exit code 0; running the same command again goes on from "
        "there. A second Ctrl-C ends it at once. --mind llm lets a language model write kernels "
        "first (docs/mind.md).",
    .parameters = parameters(),
    .run = run,
    .schemas = {"tessera.optimized/1"},
    .keeps = true,
};

}  // namespace tessera::commands
