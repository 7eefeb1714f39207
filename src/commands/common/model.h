// What the commands that take a MODEL.py share: their parameters and the tracer process that holds
// the module.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bridge/bridge.h"
#include "commands/commands.h"
#include "pipeline/pipeline.h"

namespace tessera::commands {

/// `MODEL.py[:Class]`, --arch, --precision, --device and the places.
std::vector<Parameter> model_parameters(std::vector<Parameter> more = {});

/// A tracer process with the module loaded, and the module's trace (tessera.graph/1).
struct Model {
  std::unique_ptr<bridge::Peer> tracer;
  Json traced;
  std::string stem;  // of the file, for naming outputs
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};
/// The options of a run over the model, of whose total seconds loading has taken some. `after`:
/// what the command keeps of them for what it does when the run is over.
pipeline::Options options_for(const Model& model, const Json& arguments, double after = 0);
/// Errors: the file, the class, the inputs, the trace, Python or torch missing; each says what to
/// do.
Result<Model> load_model(const Json& arguments, Context& context);

}  // namespace tessera::commands
