// The matrix products of a graph, whatever ATen op spells them, as D[l,m,n] = sum_k A[l,m,k]
// B[l,n,k].
#pragma once

#include "rules/common/expression.h"

namespace tessera::rules {

struct Product {
  NodeId node;
  ValueId result;
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  graph::Operand a;  // [l, m, k]
  graph::Operand b;  // [l, n, k]
  IndexMap map;      // of the result's storage over [l, m, n]
  /// result = alpha * product + beta * bias, the bias broadcast to the result's shape; no bias when
  /// invalid.
  ValueId bias;
  double alpha = 1;
  double beta = 1;

  /// The result as alpha * accumulator + beta * bias.
  [[nodiscard]] Evaluator::Anchor anchor() const;
};

/// linear, mm, bmm, matmul, mv, addmm, baddbmm. The error says why a kernel cannot take the node.
Result<Product> find_product(const Flow& flow, NodeId n);

}  // namespace tessera::rules
