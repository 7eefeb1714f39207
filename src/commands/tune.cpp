#include "commands/common/model.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

Result<Outcome> run(const Json& arguments, Context& context) {
  TESSERA_TRY(model, load_model(arguments, context));
  pipeline::Options options = options_for(model, arguments);
  options.compose = false;
  TESSERA_TRY(done,
              pipeline::optimize(*model.tracer, model.traced, options, pipeline_context(context)));
  Outcome out;
  out.data = done.report;
  out.text = report_text(done.report);
  out.diagnostics = done.diagnostics;
  return out;
}

}  // namespace

extern const Command tune = {
    .name = "tune",
    .doc = "find the best kernel of every pattern of a module and store it in the registry",
    .parameters = model_parameters(tuning_parameters()),
    .run = run,
    .schemas = {"tessera.report/1"},
    .keeps = true,
};

}  // namespace tessera::commands
