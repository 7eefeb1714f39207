// Matrices over F2, the field of two elements: sums are XOR. A matrix maps the bits of an index to
// the bits of an offset; column k is the offset of index 2^k.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct F2Matrix {
  std::vector<uint64_t> columns;  // bit r of columns[c] is the entry in row r and column c

  static F2Matrix identity(int size);
  /// The number of columns: bits of the index. At most 64.
  [[nodiscard]] int inputs() const { return static_cast<int>(columns.size()); }
  /// One past the highest row that is not 0.
  [[nodiscard]] int outputs() const;
  /// The XOR of the columns whose bits are set in x; bits beyond inputs() must be 0.
  [[nodiscard]] uint64_t operator()(uint64_t x) const;
  friend bool operator==(const F2Matrix&, const F2Matrix&) = default;
};

/// Rows of 0 and 1, the highest bit first: "01/10".
std::string to_string(const F2Matrix& m);

/// result(x) == a(b(x)). b has at most as many outputs as a has inputs.
F2Matrix multiply(const F2Matrix& a, const F2Matrix& b);

/// The dimension of the image; injective when it is inputs().
int rank(const F2Matrix& m);

/// A basis of all x with m(x) == 0: inputs() - rank(m) vectors.
std::vector<uint64_t> kernel(const F2Matrix& m);

/// Some x with m(x) == y, the only one when the kernel is 0; nothing when y is not in the image.
std::optional<uint64_t> solve(const F2Matrix& m, uint64_t y);

/// multiply(inverse, m) and multiply(m, inverse) are the identity; nothing unless m is square and
/// of full rank.
std::optional<F2Matrix> inverse(const F2Matrix& m);

}  // namespace tessera
