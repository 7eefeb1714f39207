// What the commands that take a MODEL.py share: their parameters and the tracer process that holds
// the module.
#pragma once

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
};
/// Errors: the file, the class, the inputs, the trace, Python or torch missing; each says what to
/// do.
Result<Model> load_model(const Json& arguments, Context& context);

}  // namespace tessera::commands
