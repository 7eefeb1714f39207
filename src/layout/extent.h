// An integer that depends on named parameters (M, N, K, a batch), which are known when a kernel is
// launched: a polynomial with integer coefficients.
//
//   M * K + 64       parameters stand for integers >= 1
//
// A fact that M is a multiple of 128 is built in: M is then 128 * {M/128}, where {M/128} is the
// unknown of the polynomial. So equality, divisibility and exact division are those of the
// coefficients, and a fact cannot be forgotten. Division that rounds up has an unknown of its own:
// {M^128} is M / 128, rounded up.
//
// Limits: nothing is known of the order of two polynomials, no other facts are kept, and unknowns
// are not related to each other ({M^128} * 128 >= M is not used). Values must fit 63 bits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diag/result.h"

namespace tessera {

class Extent {
 public:
  Extent() = default;        // 0
  Extent(int64_t constant);  // NOLINT(google-explicit-constructor): 4 is the extent 4
  /// A parameter that is a multiple of `divisor` >= 1. One name must be given the same divisor
  /// throughout: with another it is another unknown, which makes equal extents look different.
  static Extent parameter(const std::string& name, int64_t divisor = 1);

  friend Extent operator+(const Extent& a, const Extent& b);
  friend Extent operator*(const Extent& a, const Extent& b);
  friend bool operator==(const Extent&, const Extent&) = default;

  [[nodiscard]] bool is_constant() const;
  /// Of a constant.
  [[nodiscard]] int64_t constant() const;
  /// The largest integer that divides every value by its coefficients alone; 0 of 0.
  [[nodiscard]] int64_t divisor() const;
  /// The value with every parameter given. Fails when one is missing, below 1 or not the multiple
  /// that it was said to be.
  [[nodiscard]] Result<int64_t> evaluate(const std::map<std::string, int64_t>& parameters) const;
  /// *this / by, by >= 1; fails when the coefficients do not show that it is exact.
  [[nodiscard]] Result<Extent> divide(int64_t by) const;
  /// *this / by rounded up. Exact division where that is known; else of constants and of single
  /// unknowns, as M or {M^128}; fails for other sums and products.
  [[nodiscard]] Result<Extent> divide_up(int64_t by) const;

  friend std::string to_string(const Extent& e);

 private:
  /// ceil(name / by); by is a divisor of the parameter when `exact`.
  struct Unknown {
    std::string name;
    int64_t by = 1;
    bool exact = true;
    auto operator<=>(const Unknown&) const = default;
  };
  using Product = std::vector<Unknown>;  // sorted; the empty one is 1

  void add(Product product, int64_t coefficient);

  std::map<Product, int64_t> terms_;  // coefficients other than 0
};

}  // namespace tessera
