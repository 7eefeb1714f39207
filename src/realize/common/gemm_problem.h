// A matrix product as CUTLASS sees it: contiguous directions, leading strides and broadcast kinds
// instead of views.
#pragma once

#include <vector>

#include "rules/gated_mlp.h"
#include "rules/gemm.h"

namespace tessera::realize {

inline constexpr Code unsupported_gemm{"TS0410", "realize.unsupported_gemm"};

/// A [batch, rows, columns] matrix with one contiguous direction. Strides and offset in elements.
struct Matrix {
  /// The tensor of the pattern; -1 is the kernel's workspace, from its start.
  int tensor = -1;
  DType dtype = DType::float32;
  bool columns_contiguous = true;  // row-major; else column-major
  int64_t ld = 0;
  int64_t batch = 0;
  int64_t outer = 0;  // between runs of GemmProblem::inner batches
  int64_t offset = 0;
  /// Strides and offset are multiples of 16 bytes: what TMA and 16-byte vector accesses need.
  [[nodiscard]] bool aligned() const;
  /// The largest power of two of elements, up to 16 bytes, that every row starts at.
  [[nodiscard]] int alignment() const;
  [[nodiscard]] Matrix transposed() const;
};

/// An operand of the epilogue.
struct Leaf {
  enum class Kind : uint8_t { full, row, column, scalar, product } kind = Kind::full;
  /// row: [1, n] values along n; column: values along m; scalar: one value, or one a batch;
  /// product: the [n, k] right side of a second product with the same A, whose result this is.
  Matrix matrix;
};

/// An operand of a part: its element (row, group, column) lies at offset + row % rows * ld + group
/// * distance + column.
struct PartOperand {
  int tensor = 0;
  DType dtype = DType::float32;
  int64_t offset = 0;
  int64_t ld = 0;
  int64_t distance = 0;
  int64_t rows = 0;
  bool along_columns = true;
  /// Even columns start at multiples of two elements.
  [[nodiscard]] bool adjacent() const;
  friend bool operator==(const PartOperand&, const PartOperand&) = default;
};

/// rules::ColumnPart with its operands' strides.
struct Part {
  int64_t first = 0;
  int64_t columns = 0;
  int64_t period = 0;
  pointwise::Dag dag;  // accumulators first, then `operands`
  std::vector<PartOperand> operands;
  bool plain = false;
};

/// D[l,m,n] = epilogue(A[l,m,k] B[l,n,k]^T, leaves...).
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0, l = 1;
  Matrix a;                 // [l, m, k]
  Matrix b;                 // [l, n, k]
  pointwise::Dag epilogue;  // operand 0 is the accumulator, operand i + 1 is leaves[i]
  std::vector<Leaf> leaves;
  std::vector<Matrix> outputs;  // [l, m, n]
  /// Of the columns of the one row-major result, which then has no leaves.
  std::vector<Part> parts;
  Precision precision = Precision::fp32;
  /// Above 0 for batches by pointers: batch b lies at b / inner * outer + b % inner * batch.
  int64_t inner = 0;
  /// Stated as D^T = B A^T.
  bool exchanged = false;

  /// The leaf that TMA loads as the epilogue's source: the first full one with 16-byte strides; -1
  /// without one.
  [[nodiscard]] int source_leaf() const;
  /// Two products in one kernel: the first leaf is the second's result.
  [[nodiscard]] bool paired() const;
  [[nodiscard]] double flops() const;
  /// Each operand and result once.
  [[nodiscard]] double bytes() const;
};

/// The same product stated as D^T = B A^T: rows and columns, A and B exchange roles.
GemmProblem exchange(const GemmProblem& p);

/// An error (unsupported_gemm) where a view has no contiguous direction or a type that no kernel
/// reads, and for a body with parts, which few kernels can write.
Result<GemmProblem> gemm_problem(const rules::GemmBody& body, Precision precision);
/// The same with the body's parts. An error where one operand follows no row stride.
Result<GemmProblem> parted_problem(const rules::GemmBody& body, Precision precision);

/// The same for batches by pointers, which may have two strides.
Result<GemmProblem> pointer_problem(const rules::GemmBody& body, Precision precision);

/// The two products of a gated MLP: first D1 = A B1^T into the workspace in `a`'s type, then the
/// gate's product whose epilogue reads it as its last leaf.
struct GatedProblem {
  GemmProblem value;
  GemmProblem gate;
};
Result<GatedProblem> gated_problem(const rules::GatedMlpBody& body, Precision precision);
/// Both products of a gated MLP as one problem (`paired()`). An error where the weights lie
/// differently: one kernel reads them through one view, (n, 2, k) with the distance between them.
Result<GemmProblem> paired_problem(const rules::GatedMlpBody& body, Precision precision);

}  // namespace tessera::realize
