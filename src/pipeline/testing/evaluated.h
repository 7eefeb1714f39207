// A session for tests, over a small graph and with works whose searches are said to be over: it
// knows of no Python, no compiler and no device.
#pragma once

#include <string>
#include <vector>

#include "pipeline/gains.h"

namespace tessera::pipeline::testing {

/// A session over a chain of ops whose works have been evaluated, or not.
struct Evaluated {
  Options options;
  Context context;
  Session s{.options = options, .context = context};

  Evaluated() {
    graph::Graph& g = s.found.graph;
    graph::ValueId x = g.add_value(
        {.name = "x", .type = {DType::float32, {4}, {1}}, .origin = graph::Origin::user_input});
    g.inputs = {x};
    for (const char* name : {"op0", "op1", "op2", "op3"}) {
      graph::Node n{.name = name, .op = "aten.relu.default"};
      n.arguments.emplace_back("self", x);
      x = g.add_value({.name = name, .type = {DType::float32, {4}, {1}}});
      n.outputs = {x};
      g.add_node(n);
    }
    g.outputs = {x};
  }

  /// Ops `from` to `to`, both included, estimated at 1 ms each; a floor of 0.1 ms.
  std::size_t work(int from, int to) {
    const graph::Graph& g = s.found.graph;
    rules::Pattern p{.id = "p" + std::to_string(s.work.size()), .rule = "pointwise"};
    for (int i = from; i <= to; ++i) {
      const graph::NodeId n = g.order.at(static_cast<std::size_t>(i));
      p.computing.push_back(n);
      p.outputs = g.node(n).outputs;
    }
    p.inputs = graph::tensor_arguments(g.node(p.computing.front()));
    p.nodes = p.computing;
    p.unfused_ms = static_cast<double>(p.nodes.size());
    p.floor_ms = 0.1;
    s.found.discovery.patterns.push_back(p);
    Work w;
    w.patterns = {static_cast<int>(s.found.discovery.patterns.size()) - 1};
    s.work.push_back(w);
    return s.work.size() - 1;
  }

  void eager(std::size_t at, double ms) { s.work[at].tuned.emplace().eager_ms = ms; }
  void kernel(std::size_t at, kernel::Kind kind, double ms) {
    kernel::Winner w{.candidate = {.kind = kind}, .built = {}, .evidence = {}};
    if (kind == kernel::Kind::library) w.candidate.call = kernel::LibraryCall{.function = "sdpa"};
    w.evidence.ms = ms;
    s.work[at].tuned->winners.push_back(std::move(w));
  }
  void synthesized(std::size_t at, double ms) { kernel(at, kernel::Kind::synthesized, ms); }
  void library(std::size_t at, double ms) { kernel(at, kernel::Kind::library, ms); }
  void aten(std::size_t at, double ms) {
    kernel(at, kernel::Kind::library, ms);
    s.work[at].tuned->winners.back().candidate.call->function = "aten";
  }
  /// Another place of the same work, of one op.
  void also_at(std::size_t at, int op) {
    rules::Pattern p = s.pattern(s.work[at].patterns.front());
    const graph::NodeId n = s.found.graph.order.at(static_cast<std::size_t>(op));
    p.id += "b";
    p.nodes = p.computing = {n};
    p.outputs = s.found.graph.node(n).outputs;
    p.inputs = graph::tensor_arguments(s.found.graph.node(n));
    s.work[at].patterns.push_back(static_cast<int>(s.found.discovery.patterns.size()));
    s.found.discovery.patterns.push_back(p);
  }
  [[nodiscard]] Standing standing() const {
    std::vector<Price> prices;
    for (const Work& w : s.work) prices.push_back(price_of(s, w));
    return {s, prices};
  }
};

}  // namespace tessera::pipeline::testing
