#include "layout/f2_matrix.h"

#include <stdexcept>

namespace tessera {
namespace {

/// The columns brought to echelon form: the image's basis, and for each vector the columns whose
/// sum it is.
struct Echelon {
  struct Vector {
    uint64_t value;
    uint64_t columns;
  };
  std::vector<Vector> basis;  // each with another highest bit
  std::vector<uint64_t> zero_sums;

  explicit Echelon(const F2Matrix& m) {
    for (int c = 0; c < m.inputs(); ++c) {
      const Vector v = reduce({m.columns[c], uint64_t{1} << c});
      if (v.value != 0) {
        basis.push_back(v);
      } else {
        zero_sums.push_back(v.columns);
      }
    }
  }

  /// Vectors of the basis are taken off until none fits. In order, since each was reduced by those
  /// before it and none of them has its highest bit.
  [[nodiscard]] Vector reduce(Vector v) const {
    for (const Vector& b : basis) {
      if ((v.value & std::bit_floor(b.value)) == 0) continue;
      v.value ^= b.value;
      v.columns ^= b.columns;
    }
    return v;
  }
};

}  // namespace

F2Matrix F2Matrix::identity(int size) {
  F2Matrix m;
  for (int i = 0; i < size; ++i) m.columns.push_back(uint64_t{1} << i);
  return m;
}

int F2Matrix::outputs() const {
  uint64_t all = 0;
  for (uint64_t c : columns) all |= c;
  return static_cast<int>(std::bit_width(all));
}

uint64_t F2Matrix::operator()(uint64_t x) const {
  if (static_cast<int>(std::bit_width(x)) > inputs())
    throw std::logic_error("an index has more bits than a matrix has columns");
  uint64_t y = 0;
  for (; x != 0; x &= x - 1) y ^= columns[std::countr_zero(x)];
  return y;
}

std::string to_string(const F2Matrix& m) {
  std::string s;
  for (int r = m.outputs(); r-- > 0;) {
    for (int c = m.inputs(); c-- > 0;) s += (m.columns[c] >> r & 1) != 0 ? '1' : '0';
    if (r > 0) s += '/';
  }
  return s;
}

F2Matrix multiply(const F2Matrix& a, const F2Matrix& b) {
  F2Matrix out;
  for (uint64_t c : b.columns) out.columns.push_back(a(c));
  return out;
}

int rank(const F2Matrix& m) {
  return static_cast<int>(Echelon(m).basis.size());
}

std::vector<uint64_t> kernel(const F2Matrix& m) {
  return Echelon(m).zero_sums;
}

std::optional<uint64_t> solve(const F2Matrix& m, uint64_t y) {
  const Echelon::Vector rest = Echelon(m).reduce({y, 0});
  if (rest.value != 0) return std::nullopt;
  return rest.columns;
}

std::optional<F2Matrix> inverse(const F2Matrix& m) {
  const Echelon e(m);
  if (m.outputs() > m.inputs() || static_cast<int>(e.basis.size()) != m.inputs())
    return std::nullopt;
  F2Matrix out;
  for (int r = 0; r < m.inputs(); ++r)
    out.columns.push_back(e.reduce({uint64_t{1} << r, 0}).columns);
  return out;
}

}  // namespace tessera
