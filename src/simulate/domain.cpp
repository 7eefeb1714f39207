#include "simulate/domain.h"

#include <algorithm>
#include <bit>

#include "residue/field.h"

namespace tessera::simulate {
namespace {

/// Of a value that is kept as an element of this type.
uint32_t mark_of(DType t) {
  return static_cast<uint32_t>(t) + 1;
}

/// A factor's elements, one residue after the other; an element that is none makes its row or
/// column nothing.
struct Pairs {
  std::vector<residue::Pair> at;
  std::vector<bool> broken;
  Pairs(const std::vector<residue::Value>& values, int64_t width)
      : at(values.size()), broken(static_cast<std::size_t>(width)) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (residue::has_pair(values[i]))
        at[i] = residue::pair_of(values[i]);
      else
        broken[i % static_cast<std::size_t>(width)] = true;
  }
};

}  // namespace

double Numbers::operand(arch::Element e, const uint8_t* bytes) {
  if (e != arch::Element::tf32) return decode(arch::storage_of(e), bytes);
  uint32_t bits = 0;
  std::memcpy(&bits, bytes, 4);
  return std::bit_cast<float>(bits & ~0x1fffU);  // the low bits are not looked at
}

double Numbers::saturated(double v) {
  return std::clamp(v, -2147483648.0, 2147483647.0);
}

void Numbers::add_product(std::vector<double>& sums, const std::vector<double>& a,
                          const std::vector<double>& b, int64_t k, int64_t n) {
  for (int64_t i = 0; i < k; ++i)
    for (int64_t m = 0; m < 16; ++m) {
      const double x = a[i * 16 + m];
      const double* const row = b.data() + i * n;
      double* const to = sums.data() + m * n;
      for (int64_t j = 0; j < n; ++j) to[j] += x * row[j];
    }
}

void Numbers::round_to_tf32(std::vector<uint8_t>& elements) {
  for (std::size_t i = 0; i + 4 <= elements.size(); i += 4) {
    float v = 0;
    std::memcpy(&v, elements.data() + i, 4);
    if (std::isfinite(v))
      v = std::bit_cast<float>((std::bit_cast<uint32_t>(v) + 0x1000U) & ~0x1fffU);
    std::memcpy(elements.data() + i, &v, 4);
  }
}

residue::Value Residues::decode(DType t, const uint8_t* bytes) {
  residue::Value v;
  std::memcpy(&v, bytes, sizeof v);
  const bool zero = v.type == 0 && v.is_number() && v.number == 0;
  if (!zero && v.type != mark_of(t)) return residue::nothing();
  v.type = 0;
  return v;
}

void Residues::encode(DType t, residue::Value v, uint8_t* bytes) {
  v.type = mark_of(t);
  std::memcpy(bytes, &v, sizeof v);
  // What was in the element's other cells is no value any more.
  std::memset(bytes + cell, 0xff, static_cast<std::size_t>((size_of(t) - 1) * cell));
}

residue::Value Residues::operand(arch::Element e, const uint8_t* bytes) {
  return decode(arch::storage_of(e), bytes);
}

void Residues::add_product(std::vector<Value>& sums, const std::vector<Value>& a,
                           const std::vector<Value>& b, int64_t k, int64_t n) {
  using residue::p, residue::q, residue::plus_product;
  const Pairs x(a, 16), y(b, n);
  std::vector<uint64_t> of_p(static_cast<std::size_t>(n)), of_q(of_p);
  for (int64_t m = 0; m < 16; ++m) {
    std::fill(of_p.begin(), of_p.end(), 0);
    std::fill(of_q.begin(), of_q.end(), 0);
    for (int64_t i = 0; i < k; ++i) {
      const residue::Pair left = x.at[i * 16 + m];
      const residue::Pair* const row = y.at.data() + i * n;
      for (int64_t j = 0; j < n; ++j) {
        of_p[j] = plus_product(of_p[j], left.mod_p, row[j].mod_p, p);
        of_q[j] = plus_product(of_q[j], left.mod_q, row[j].mod_q, q);
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      Value& to = sums[m * n + j];
      to = x.broken[m] || y.broken[j]
               ? residue::nothing()
               : residue::add(to, residue::residues(of_p[j] % p, of_q[j] % q));
    }
  }
}

}  // namespace tessera::simulate
