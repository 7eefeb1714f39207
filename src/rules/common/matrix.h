// The matrix products of a graph, whatever ATen op spells them, as D[l,m,n] = sum_k A[l,m,k]
// B[l,n,k]. Batches without a common stride keep two dims, [l1,l2,m,n].
#pragma once

#include "rules/common/expression.h"

namespace tessera::rules {

struct Product {
  NodeId node;
  ValueId result;
  int64_t batch = 1;             // all of them
  std::vector<int64_t> batches;  // one dim, or two whose product is `batch`
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  graph::Operand a;  // [batches..., m, k]
  graph::Operand b;  // [batches..., n, k]
  IndexMap map;      // of the result's storage over [batches..., m, n]
  /// Factors of the product, broadcast to the result's shape: the scales of fp8 operands.
  std::vector<ValueId> scales;
  /// result = alpha * product * scales + beta * bias, the bias broadcast to the result's shape; no
  /// bias when invalid.
  ValueId bias;
  double alpha = 1;
  double beta = 1;

  /// The result as alpha * accumulator * scales + beta * bias.
  [[nodiscard]] Evaluator::Anchor anchor() const;
};

/// linear, mm, bmm, matmul, mv, addmm, baddbmm, _scaled_mm. The error says why a kernel cannot take
/// the node.
Result<Product> find_product(const Flow& flow, NodeId n);

/// A product body's `epilogue`, `operands` and `outputs`.
void add_epilogue(Json& body, const pointwise::Dag& epilogue,
                  const std::vector<TensorView>& operands, const std::vector<TensorView>& outputs);

}  // namespace tessera::rules
