// What a kernel is to compute: sums of products of matrices, and functions of them.
//
//   C[b, i, j] = relu(sum(A[b, i, k] * B[b, j, k], k) * 0.5 + X0[b, 0, j]) + X1[b, i, j]
//
// Several outputs are several equations of the same sum, with `;` between them.
//
// A product may be made in slices of k, by two kernels:
//
//   sum(P[s, i, j], s) = sum(A[i, k] * B[j, k], k)     what the slices hold adds up to the product
//   C[i, j] = relu(sum(P[s, i, j], s)) + X0[0, j]      a sum of elements, and a function of it
#pragma once

#include "check/attention_means.h"
#include "core/kernel.h"
#include "pointwise/pointwise.h"

namespace tessera::check {

inline constexpr Code bad_meaning{"TS0878", "check.bad_meaning"};

/// What an index of an element is: the output's row i, its column j, its batch b, the k of the sum,
/// a number, or one that is compared by whoever traces it.
enum class Axis : uint8_t { row, column, batch, k, number, free };

struct Index {
  Axis axis = Axis::number;
  int64_t number = 0;  // of Axis::number
  friend bool operator==(const Index&, const Index&) = default;
};

/// An element of a tensor, with an index a dimension.
struct ElementAt {
  core::TensorId tensor;
  std::vector<Index> at;
  /// The dimension that the axis is the index of; -1: none.
  [[nodiscard]] int place(Axis axis) const;
  friend bool operator==(const ElementAt&, const ElementAt&) = default;
};

/// One equation: an element of an output is a function of the sum and of elements of inputs.
struct Output {
  ElementAt to;
  /// One result. Operand 0 is the sum, operand n + 1 is elements[n].
  pointwise::Dag value;
  std::vector<ElementAt> elements;
};

struct Means {
  /// The factors: a has the row, b the column, both have k. Or elements of a alone are summed, with
  /// a row and a column: b has no tensor.
  ElementAt a, b;
  std::vector<Output> outputs;
  /// The output's batch numbers slices of k, whose sums add up to the right side.
  bool slices = false;
  /// Where it is attention: nothing else is set.
  std::optional<Attention> attention;
  /// Of products; else of elements.
  [[nodiscard]] bool multiplies() const { return b.tensor.valid(); }
};

/// Kernel::means taken apart, with the kernel's tensors and any names of indices. Indices of
/// tensors are names or numbers. A name is that of k if both factors and not the output have it; of
/// the batch if both factors and the output have it, or if it is the first of two that one factor
/// alone shares with the output. Of a sum of elements the output has the row and the column, in
/// this order. Nothing where the kernel says nothing. TS0878 for a text of
/// another form.
Result<std::optional<Means>> means_of(const core::Kernel& kernel);

}  // namespace tessera::check
