#include <filesystem>
#include <fmt/format.h>

#include "base/files.h"
#include "commands/common/html_report.h"
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

Result<Outcome> run(const Json& arguments, Context& context) {
  const std::string given = arguments.value("output", "");
  if (!given.empty())
    TESSERA_CHECK(writable_output(given));  // at once, else when the name is known
  TESSERA_TRY(model, load_model(arguments, context));
  const std::filesystem::path folder =
      given.empty() ? std::filesystem::path("out") / model.stem : std::filesystem::path(given);
  if (given.empty()) TESSERA_CHECK(writable_output(folder));
  const pipeline::Options options = pipeline::options_from(arguments);
  TESSERA_TRY(done,
              pipeline::optimize(*model.tracer, model.traced, options, pipeline_context(context)));
  Outcome out;
  out.data = {
      {"schema", "tessera.optimized/1"}, {"folder", folder.string()}, {"report", done.report}};
  out.text = report_text(done.report);
  out.diagnostics = done.diagnostics;
  write_file_atomically(folder / "plan.json", done.plan.dump(1));
  write_file_atomically(folder / "report.json", done.report.dump(1));
  write_file_atomically(folder / "report.txt", out.text);
  if (auto exported = model.tracer->call(
          "export_module",
          {{"plan", done.plan}, {"folder", std::filesystem::absolute(folder).string()}},
          std::chrono::seconds(300));
      !exported) {
    out.diagnostics.push_back(exported.error());
  } else {
    out.data["files"] = exported->value("files", Json::array());
  }
  out.text += fmt::format("\nwritten to {}\n", folder.string());
  render_html(folder, out);
  return out;
}

}  // namespace

extern const Command optimize = {
    .name = "optimize",
    .doc = "make a module faster: find, write, verify, tune and compose kernels for it",
    .details =
        "Ctrl-C (or SIGTERM, or a closed terminal) stops the search and keeps the best so far, "
        "verified and written as always, exit code 0; running the same command again goes on from "
        "there. A second Ctrl-C ends it at once.",
    .parameters = model_parameters(tuning_parameters(composing_parameters({
        {.type = Parameter::Type::text,
         .name = "output",
         .doc = "folder for the module and its report (default: out/NAME)",
         .names = Parameter::Names::output},
    }))),
    .run = run,
    .schemas = {"tessera.optimized/1"},
    .keeps = true,
};

}  // namespace tessera::commands
