// A graph from standard input through one step, for tests: `graph_tool
// json|text|canonicalize|canonical-text|rewrites`.
#include <fmt/format.h>
#include <iostream>
#include <iterator>

#include "graph/graph.h"

#include "rewrite/canonical.h"

int main(int argc, char** argv) {
  using namespace tessera;
  const std::string command = argc == 2 ? argv[1] : "";
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  auto g = graph::import_graph(parse_json(text));
  if (!g) {
    fmt::print(stderr, "{}", to_text(g.error()));
    return static_cast<int>(exit_code(g.error()));
  }
  if (command == "json") {
    fmt::print("{}\n", graph::to_json(*g).dump(1));
  } else if (command == "text") {
    fmt::print("{}", graph::to_text(*g));
  } else if (command == "canonicalize") {
    rewrite::canonicalize(*g);
    fmt::print("{}\n", graph::to_json(*g).dump(1));
  } else if (command == "canonical-text") {
    rewrite::canonicalize(*g);
    fmt::print("{}", graph::to_text(*g));
  } else if (command == "rewrites") {
    for (const rewrite::Rewrite& r : rewrite::canonicalize(*g)) {
      fmt::print("{} <- {} ({})\n", r.result, r.what, fmt::join(r.nodes, ", "));
    }
  } else {
    fmt::print(stderr,
               "usage: graph_tool json|text|canonicalize|canonical-text|rewrites < graph.json\n");
    return 3;
  }
  return 0;
}
