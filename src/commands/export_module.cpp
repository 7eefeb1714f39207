// `tessera export MODEL.py --kernelbench`: the optimized module as files that others load.
#include <filesystem>
#include <fmt/format.h>

#include "base/files.h"
#include "commands/common/model.h"
#include "commands/common/optimizing.h"
#include "commands/common/output_folder.h"

namespace tessera::commands {
namespace {

using Type = Parameter::Type;

Result<Outcome> run(const Json& arguments, Context& context) {
  const std::filesystem::path folder =
      std::filesystem::absolute(arguments.at("output").get<std::string>());
  TESSERA_CHECK(writable_output(folder));
  TESSERA_TRY(model, load_model(arguments, context));
  TESSERA_TRY(done, pipeline::optimize(*model.tracer, model.traced, options_for(model, arguments),
                                       pipeline_context(context)));
  Json params = {{"plan", done.plan}, {"folder", folder.string()}};
  if (arguments.value("kernelbench", false)) params["form"] = "kernelbench";
  TESSERA_TRY(exported, model.tracer->call("export_module", params, std::chrono::seconds(300)));
  write_file_atomically(folder / "report.json", done.report.dump(1));
  Outcome out;
  const std::string runner = done.plan.value("runner", "kernels");
  int kernels = 0;
  for (const Json& step : done.plan.at("steps"))
    kernels +=
        runner == "kernels" && (step.at("kind") == "kernel" || step.at("kind") == "call") ? 1 : 0;
  out.data = {{"schema", "tessera.exported/1"},
              {"folder", folder.string()},
              {"files", exported.value("files", Json::array())},
              {"runner", runner},
              {"kernels", kernels}};
  out.text = runner == "kernels"
                 ? fmt::format("{} kernels", kernels)
                 : fmt::format("no kernel gained anything: the module is run by {}", runner);
  out.text += fmt::format(", written to {}\n", folder.string());
  for (const Json& f : out.data["files"]) out.text += "  " + f.get<std::string>() + "\n";
  out.diagnostics = done.diagnostics;
  return out;
}

}  // namespace

extern const Command export_module;
const Command export_module = {
    .name = "export",
    .doc = "write an optimized module as files that others load: for KernelBench's evaluator, say",
    .details =
        "The folder has the plan, the kernels, and composed.py, which puts them behind a module. "
        "With "
        "--kernelbench also model_new.py: a class ModelNew that KernelBench's evaluator takes. It "
        "is "
        "for the shapes that were traced and for inference, and never runs the original in their "
        "place. It has to stay where it was written.",
    .parameters = model_parameters(tuning_parameters(composing_parameters({
        {.type = Type::text,
         .name = "output",
         .doc = "folder to write to",
         .required = true,
         .names = Parameter::Names::output},
        {.type = Type::flag,
         .name = "kernelbench",
         .doc = "also a file with the class ModelNew, for KernelBench's evaluator"},
    }))),
    .run = run,
    .schemas = {"tessera.exported/1"},
    .keeps = true,
};

}  // namespace tessera::commands
