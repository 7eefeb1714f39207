#include "commands/common/model.h"

#include "rewrite/canonical.h"

namespace tessera::commands {
namespace {

Result<Outcome> run(const Json& arguments, Context& context) {
  TESSERA_TRY(model, load_model(arguments, context));
  TESSERA_TRY(g, graph::import_graph(model.traced));
  Outcome out;
  const bool raw = arguments.value("raw", false);
  std::vector<rewrite::Rewrite> rewrites;
  if (!raw) rewrites = rewrite::canonicalize(g);
  out.text = graph::to_text(g);
  for (const rewrite::Rewrite& r : rewrites) {
    out.text +=
        fmt::format("# rewrite: {} -> %{} (was {})\n", r.what, r.result, fmt::join(r.nodes, ", "));
  }
  out.data = graph::to_json(g);
  return out;
}

}  // namespace

extern const Command trace = {
    .name = "trace",
    .doc = "trace a module and print its graph in canonical form",
    .parameters = model_parameters(
        {{.type = Parameter::Type::flag, .name = "raw", .doc = "as traced, before any rewrite"}}),
    .run = run,
    .schemas = {"tessera.graph/1"},
};

}  // namespace tessera::commands
