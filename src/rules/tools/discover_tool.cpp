// Discovery on a graph from standard input: `rules_tool table|json|canonical [ARCH] < graph.json`;
// canonical prints the graph that the discovery speaks of. `rules_tool functions` prints the ATen
// op of every pointwise function that is one, by the function's name.
#include <fmt/format.h>
#include <iostream>
#include <iterator>

#include "rules/rules.h"

#include "rewrite/canonical.h"

namespace {

tessera::Json functions() {
  tessera::Json ops = tessera::Json::object();
  for (const tessera::pointwise::Function& f : tessera::pointwise::functions())
    if (!f.aten.empty()) ops[std::string(f.name)] = f.aten;
  return ops;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tessera;
  const std::string form = argc > 1 ? argv[1] : "";
  if (form == "functions" && argc == 2) {
    fmt::print("{}\n", functions().dump());
    return 0;
  }
  if ((form != "table" && form != "json" && form != "canonical") || argc > 3) {
    fmt::print(
        stderr,
        "usage: rules_tool table|json|canonical [ARCH] < graph.json; rules_tool functions\n");
    return static_cast<int>(Exit::bad_input);
  }
  auto run = [&]() -> Result<std::string> {
    TESSERA_TRY(arch, arch::find(argc == 3 ? argv[2] : "sm_90a"));
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    TESSERA_TRY(g, graph::import_graph(try_parse_json(text)));
    rewrite::canonicalize(g);
    if (form == "canonical") return graph::to_json(g).dump() + "\n";
    const rules::Discovery d = rules::discover(g, *arch);
    return form == "json" ? rules::to_json(g, d).dump(1) + "\n" : rules::to_table(g, d);
  };
  auto result = run();
  if (!result) {
    fmt::print(stderr, "{}", to_text(result.error()));
    return static_cast<int>(exit_code(result.error()));
  }
  fmt::print("{}", *result);
  return 0;
}
