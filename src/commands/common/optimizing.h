// What `optimize`, `tune` and `serve` share: the tuning parameters and the text of a report.
#pragma once

#include <string>
#include <vector>

#include "commands/commands.h"
#include "pipeline/pipeline.h"

namespace tessera::commands {

std::vector<Parameter> tuning_parameters(std::vector<Parameter> more = {});
/// The report for people, in the terminal, in 80 columns: patterns and winners, what was left and
/// why, times beside peers. At most 80 columns.
std::string report_text(const Json& report);
pipeline::Context pipeline_context(Context& context);

}  // namespace tessera::commands
