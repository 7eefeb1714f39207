// What values are while a kernel runs, and how bytes hold them: a parameter of a launch.
//
// Numbers are those of the element types, rounded as the machine rounds them. Residues are those of
// residue/value.h, never rounded. Instructions move bytes, and know nothing of either: of residues
// a byte of the machine is a cell of 16 bytes here, so that an element's first cell has its value.
// The few instructions that compute are written once, for both.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "arch/element.h"

#include "pointwise/pointwise.h"
#include "residue/functions.h"
#include "simulate/encode.h"
#include "simulate/program.h"

namespace tessera::simulate {

struct Numbers {
  using Value = double;
  static constexpr int64_t cell = 1;
  static Value decode(DType t, const uint8_t* bytes) { return simulate::decode(t, bytes); }
  static void encode(DType t, Value v, uint8_t* bytes) { simulate::encode(t, v, bytes); }
  /// An operand of a product.
  static Value operand(arch::Element e, const uint8_t* bytes);
  static Value integer(int64_t n) { return static_cast<Value>(n); }
  static Value nothing() { return std::nan(""); }
  static Value add(Value a, Value b) { return a + b; }
  static Value least(Value a, Value b) { return std::min(a, b); }
  static Value greatest(Value a, Value b) { return std::max(a, b); }
  static Value scaled(double by, Value v) { return by * v; }
  static Value saturated(Value v);
  static std::vector<Value> evaluate(const pointwise::Dag& dag, std::span<const Value> operands) {
    return dag.eval(operands);
  }
  /// sums[16][n] += the sum over k of a[k][16] b[k][n].
  static void add_product(std::vector<Value>& sums, const std::vector<Value>& a,
                          const std::vector<Value>& b, int64_t k, int64_t n);
  /// Elements of f32, to the nearest numbers of tf32, ties away from zero.
  static void round_to_tf32(std::vector<uint8_t>& elements);
};

struct Residues {
  using Value = residue::Value;
  static constexpr int64_t cell = sizeof(Value);
  /// Whether an instruction has a meaning on residues: those that compute with bits have none.
  static bool have(std::string_view form) {
    return !form.starts_with("vote.") && !form.starts_with("warp.reduce");
  }
  /// Bytes of another type than they were written as are nothing, but zeros are zero.
  static Value decode(DType t, const uint8_t* bytes);
  static void encode(DType t, Value v, uint8_t* bytes);
  static Value operand(arch::Element e, const uint8_t* bytes);
  static Value integer(int64_t n) { return residue::number(static_cast<double>(n)); }
  static Value nothing() { return residue::nothing(); }
  static Value add(const Value& a, const Value& b) { return residue::add(a, b); }
  static Value least(const Value& a, const Value& b) { return residue::least(a, b); }
  static Value greatest(const Value& a, const Value& b) { return residue::greatest(a, b); }
  static Value scaled(double by, const Value& v) {
    return by == 1 ? v : residue::multiply(residue::number(by), v);
  }
  static Value saturated(const Value& v) { return v; }
  static std::vector<Value> evaluate(const pointwise::Dag& dag, std::span<const Value> operands) {
    return residue::evaluate(dag, operands);
  }
  static void add_product(std::vector<Value>& sums, const std::vector<Value>& a,
                          const std::vector<Value>& b, int64_t k, int64_t n);
  static void round_to_tf32(std::vector<uint8_t>&) {}
};

/// f(values) with the values that the program runs on.
template <class F>
decltype(auto) with_values(const Program& p, const F& f) {
  return p.launch.residues ? f(Residues{}) : f(Numbers{});
}

}  // namespace tessera::simulate
