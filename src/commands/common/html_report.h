// A stored report as one HTML file, which the Python edge renders.
#pragma once

#include <filesystem>

#include "commands/commands.h"

namespace tessera::commands {

/// Writes `html` from the report.json at `report` and says so in the outcome's text. Where that
/// Python has no plotly the page has tables in place of plots, which is a warning of the outcome
/// (TS0709). Error: TS0711, the page could not be written.
Status write_html(const std::filesystem::path& report, const std::filesystem::path& html,
                  Outcome& out);

}  // namespace tessera::commands
