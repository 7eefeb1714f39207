// What a kernel is to compute: sums of products of matrices, and functions of them.
//
//   C[b, i, j] = relu(sum(A[b, i, k] * B[b, j, k], k) * 0.5 + X0[b, 0, j]) + X1[b, i, j]
//
// Several outputs are several equations of the same sums, with `;` between them. Sums of different
// right factors have one left factor:
//
//   C[i, j] = silu(sum(A[i, k] * B[j, k], k)) * sum(A[i, k] * D[j, k], k)
//
// Columns may be of several parts, and take sums of other columns:
//
//   C[i, j] = sum(A[i, k] * B[j + 32, k], k) * X0[i, j % 64] if j % 64 < 32 else 0 * sum(...)
//
// A product may be made in slices of k, by two kernels:
//
//   sum(P[s, i, j], s) = sum(A[i, k] * B[j, k], k)     what the slices hold adds up to the product
//   C[i, j] = relu(sum(P[s, i, j], s)) + X0[0, j]      a sum of elements, and a function of it
//
// Nothing has to be summed: the right side is a function of elements then.
//
//   C[b, i, j] = A[b, i, j]                            a copy
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
  int64_t number = 0;   // of Axis::number; of a row or a column: what is added to it
  int64_t modulus = 0;  // above 0: the remainder by it, of the index with what is added
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

/// What a function is of: an element of an input, or a sum.
struct Read {
  ElementAt element;
  /// Of a sum, which of the right factors it has: `element` is one of it, at the column that the
  /// sum is of. Of a sum of elements 0: `element` is one of these. -1: no sum.
  int factor = -1;
  friend bool operator==(const Read&, const Read&) = default;
};

/// `index < below`, of a column; or not, where `holds` is false.
struct ColumnBound {
  Index index;
  int64_t below = 0;
  bool holds = true;
};

/// A function, where all of `where` are so.
struct Case {
  std::vector<ColumnBound> where;
  /// One result. Operand n is reads[n].
  pointwise::Dag value;
  std::vector<Read> reads;
};

/// One equation: an element of an output is one of these functions. Exactly one is for each column.
struct Output {
  ElementAt to;
  std::vector<Case> cases;
};

struct Means {
  /// The left factor of all sums: it has the row and k. Or its elements alone are summed, with a
  /// row and a column: there is no right factor.
  ElementAt a;
  std::vector<ElementAt> b;  // the right ones, by tensor: they have the column and k
  std::vector<Output> outputs;
  /// The output's batch numbers slices of k, whose sums add up to the right side.
  bool slices = false;
  /// Where it is attention: nothing else is set.
  std::optional<Attention> attention;
  /// Of products; else of elements.
  [[nodiscard]] bool multiplies() const { return !b.empty(); }
  /// Else there is no `a`.
  [[nodiscard]] bool sums() const { return a.tensor.valid(); }
  /// What is added to the output's column in all sums: 64 of sum(A[i, k] * B[j + 64, k], k). Where
  /// they differ and none has the column itself, the least. A tile of the output lies so far before
  /// the rows of B that it is made of.
  [[nodiscard]] int64_t column_shift() const;
};

/// Kernel::means taken apart, with the kernel's tensors and any names of indices. Indices of
/// tensors are names or numbers. A name is that of k if both factors and not the output have it; of
/// the batch if both factors and the output have it, or if it is the first of two that one factor
/// alone shares with the output. Rows and columns may have numbers added, and a remainder taken;
/// not of a sum of elements, where the output has the row and the column, in this order; without a
/// sum it has them so, with the batch before them where it has three names. Nothing where the
/// kernel says nothing. TS0878 for a text of another form.
Result<std::optional<Means>> means_of(const core::Kernel& kernel);

}  // namespace tessera::check
