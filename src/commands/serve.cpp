#include "bridge/bridge.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

Result<Outcome> run(const Json&, Context& context) {
  auto parent = bridge::parent_process();
  TESSERA_CHECK(
      bridge::serve(*parent, [&](const std::string& method, const Json& params) -> Result<Json> {
        if (method != "optimize") {
          return error(
              fail(Code{"TS0720", "protocol.unknown_method"}, "unknown method `{}`", method)
                  .expect("optimize"));
        }
        TESSERA_TRY(given, options_of_program(params.value("options", Json::object())));
        const pipeline::Options options = pipeline::options_from(given);
        pipeline::Context pipe = pipeline_context(context);
        pipe.progress = [&](const Json& event) { bridge::notify(*parent, "progress", event); };
        TESSERA_TRY(done, pipeline::optimize(*parent, params.at("graph"), options, pipe));
        Json warnings = Json::array();
        for (const Diagnostic& d : done.diagnostics) warnings.push_back(to_json(d));
        return Json{{"plan", done.plan},
                    {"report", done.report},
                    {"text", report_text(done.report)},
                    {"diagnostics", warnings}};
      }));
  return Outcome{};
}

}  // namespace

extern const Command serve = {
    .name = "serve",
    .doc =
        "speak the protocol of docs/protocol.md on stdin and stdout (what tessera.optimize starts)",
    .run = run,
    .hidden = true,
};

}  // namespace tessera::commands
