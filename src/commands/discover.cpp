#include "commands/common/model.h"

namespace tessera::commands {
namespace {

Result<Outcome> run(const Json& arguments, Context& context) {
  TESSERA_TRY(model, load_model(arguments, context));
  TESSERA_TRY(found, pipeline::discover(model.traced, pipeline::options_from(arguments)));
  pipeline::ask_realizers(found);
  Outcome out;
  out.data = rules::to_json(found.graph, found.discovery);
  out.text = rules::to_table(found.graph, found.discovery);
  return out;
}

}  // namespace

extern const Command discover = {
    .name = "discover",
    .doc = "find the subgraphs worth a kernel of their own, with headroom and reasons",
    .parameters = model_parameters(),
    .run = run,
    .schemas = {"tessera.discovery/1"},
};

}  // namespace tessera::commands
