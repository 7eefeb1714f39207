// What `optimize`, `tune` and `serve` share: the tuning parameters and the text of a report.
#pragma once

#include <string>
#include <vector>

#include "commands/commands.h"
#include "pipeline/pipeline.h"

namespace tessera::commands {

/// What `optimize` takes besides: who runs the rest, what is measured and checked.
std::vector<Parameter> composing_parameters(std::vector<Parameter> more);
/// Options of `optimize` as a program gives them, keys with dashes or underscores, switches as
/// booleans: checked, with presets filled in. Unknown names and values are errors with the nearest
/// right word; `own`: words that the program takes itself.
Result<Json> options_of_program(const Json& given, const std::vector<std::string>& own = {});
std::vector<Parameter> tuning_parameters(std::vector<Parameter> more = {});
/// The report for people, in the terminal, in 80 columns: patterns and winners, what was left and
/// why, times beside peers. At most 80 columns.
std::string report_text(const Json& report);
pipeline::Context pipeline_context(Context& context);

}  // namespace tessera::commands
