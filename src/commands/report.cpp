#include <filesystem>

#include "base/files.h"
#include "commands/common/html_report.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

inline constexpr Code no_report{"TS0031", "input.no_report"};
inline constexpr Code not_a_report{"TS0032", "input.not_a_report"};

Result<Outcome> run(const Json& arguments, Context&) {
  std::filesystem::path file = arguments.at("report").get<std::string>();
  if (std::filesystem::is_directory(file)) file /= "report.json";
  if (!std::filesystem::is_regular_file(file)) {
    return error(fail(no_report, "there is no report at `{}`", file.string())
                     .expect("report.json, or the folder that `tessera optimize` wrote")
                     .help("run `tessera optimize MODEL.py` first"));
  }
  Outcome out;
  out.data = try_parse_json(read_file(file));
  if (out.data.is_discarded() || out.data.value("schema", "") != "tessera.report/1") {
    return error(fail(not_a_report, "`{}` is not a report", file.string())
                     .expect("JSON with \"schema\": \"tessera.report/1\"")
                     .help("give the report.json that `tessera optimize` wrote"));
  }
  out.text = report_text(out.data);
  const std::string html = arguments.value("html", "");
  if (html.empty()) return out;
  TESSERA_CHECK(write_html(file, html, out));
  return out;
}

}  // namespace

extern const Command report = {
    .name = "report",
    .doc = "print a stored report, or render it as one self-contained HTML file",
    .parameters =
        {{.type = Parameter::Type::text,
          .name = "report",
          .doc = "report.json or its folder",
          .positional = true,
          .required = true,
          .names = Parameter::Names::input},
         {.type = Parameter::Type::text,
          .name = "html",
          .doc =
              "the HTML file to write; its plots need plotly in the Python that `tessera doctor` "
              "shows, without it tables stand in their place",
          .names = Parameter::Names::output}},
    .run = run,
    .schemas = {"tessera.report/1"},
};

}  // namespace tessera::commands
