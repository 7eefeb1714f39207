#include <unistd.h>

#include "base/elsewhere.h"
#include "bridge/bridge.h"
#include "commands/common/optimizing.h"

namespace tessera::commands {
namespace {

inline constexpr Code unknown_method{"TS0720", "protocol.unknown_method"};

Result<Json> check_options(const Json& params) {
  TESSERA_CHECK(options_of_program(params.value("options", Json::object()),
                                   params.value("own", std::vector<std::string>())));
  return Json::object();
}

Result<Json> optimize_held(bridge::Peer& tracer, const Json& params, Context& context) {
  TESSERA_TRY(given, options_of_program(params.value("options", Json::object())));
  const pipeline::Options options = pipeline::options_from(given);
  pipeline::Context pipe = pipeline_context(context);
  pipe.progress = [&](const Json& event) { bridge::notify(tracer, "progress", event); };
  TESSERA_TRY(done, pipeline::optimize(tracer, params.at("graph"), options, pipe));
  Json warnings = Json::array();
  for (const Diagnostic& d : done.diagnostics) warnings.push_back(to_json(d));
  return Json{{"plan", done.plan},
              {"report", done.report},
              {"text", report_text(done.report)},
              {"diagnostics", warnings}};
}

Result<Outcome> run(const Json&, Context& context) {
  auto parent = bridge::parent_process();
  Elsewhere::serve(::getppid());  // it runs and times the modules
  TESSERA_CHECK(
      bridge::serve(*parent, [&](const std::string& method, const Json& params) -> Result<Json> {
        if (method == "check_options") return check_options(params);
        if (method == "optimize") return optimize_held(*parent, params, context);
        return error(fail(unknown_method, "unknown method `{}`", method)
                         .expect("check_options or optimize"));
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
    .door = true,
};

}  // namespace tessera::commands
