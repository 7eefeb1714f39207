// Discovery on a graph from standard input: `rules_tool table|json|canonical [ARCH] < graph.json`;
// canonical prints the graph that the discovery speaks of.
#include <fmt/format.h>
#include <iostream>
#include <iterator>

#include "rules/rules.h"

#include "rewrite/canonical.h"

int main(int argc, char** argv) {
  using namespace tessera;
  const std::string form = argc > 1 ? argv[1] : "";
  if ((form != "table" && form != "json" && form != "canonical") || argc > 3) {
    fmt::print(stderr, "usage: rules_tool table|json|canonical [ARCH] < graph.json\n");
    return static_cast<int>(Exit::bad_input);
  }
  auto run = [&]() -> Result<std::string> {
    TESSERA_TRY(arch, arch::find(argc == 3 ? argv[2] : "sm_90a"));
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    TESSERA_TRY(g, graph::import_graph(Json::parse(text, nullptr, false)));
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
