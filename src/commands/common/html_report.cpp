#include "commands/common/html_report.h"

#include <fmt/format.h>

#include "base/process.h"
#include "bridge/bridge.h"

namespace tessera::commands {
namespace {

inline constexpr Code no_plotly{"TS0709", "report.no_plotly"};
inline constexpr Code cannot_render{"TS0711", "report.cannot_render"};

}  // namespace

Status write_html(const std::filesystem::path& report, const std::filesystem::path& html,
                  Outcome& out) {
  const std::string python = bridge::find_python().string();
  const auto done =
      tessera::run({.argv = {python, "-m", "tessera.report", report.string(), html.string()},
                    .env = {{"PYTHONPATH", bridge::python_path().string()}}},
                   std::chrono::seconds(120));
  if (!done.ok()) {
    return error(
        fail(cannot_render, "the HTML report could not be written")
            .but_found("{}", done.output.substr(0, 2000))
            .help("`tessera doctor` says what is missing; `tessera report {}` prints it as "
                  "text",
                  report.parent_path().string()));
  }
  out.text += fmt::format("report: {}\n", html.string());
  // Said by python -m tessera.report, which knows its own packages.
  if (done.output.find(no_plotly.id) == std::string::npos) return {};
  Diagnostic d = fail(no_plotly, "the HTML report has tables in place of plots")
                     .expect("the package plotly in {}", python)
                     .help("{} -m pip install plotly, then `tessera report {} --html {}`", python,
                           report.parent_path().string(), html.string())
                     .help("TESSERA_PYTHON names another Python");
  d.level = Level::warning;
  out.diagnostics.push_back(std::move(d));
  return {};
}

}  // namespace tessera::commands
