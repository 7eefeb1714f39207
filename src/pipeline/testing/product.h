// A small graph for tests: a product of square matrices and a function of its elements.
#pragma once

#include <string>

#include "graph/graph.h"

namespace tessera::pipeline::testing {

/// z = op(x w), both matrices n x n; `op` takes `self` alone, as aten.relu.default does.
inline graph::Graph product_and(const std::string& op, int64_t n, Precision precision,
                                DType dtype) {
  graph::Graph g;
  g.precision = precision;
  const auto value = [&](const char* name) {
    return g.add_value({.name = name, .type = {dtype, {n, n}, {n, 1}}});
  };
  const graph::ValueId x = value("x"), w = value("w"), y = value("y"), z = value("z");
  g.inputs = {x, w};
  graph::Node mm{.name = "y", .op = "aten.mm.default"};
  mm.arguments = {{"self", x}, {"mat2", w}};
  mm.outputs = {y};
  g.add_node(mm);
  graph::Node of_elements{.name = "z", .op = op};
  of_elements.arguments.emplace_back("self", y);
  of_elements.outputs = {z};
  g.add_node(of_elements);
  g.outputs = {z};
  return g;
}

}  // namespace tessera::pipeline::testing
