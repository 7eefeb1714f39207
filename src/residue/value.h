// Numbers of two prime fields in the place of real ones.
//
// A value is a whole number or a fraction of two, known exactly, or a pair of residues: modulo p,
// and modulo q with p = 2 q + 1. Sums, products and quotients are taken of both. The second is what
// a power's exponent is told by: 2 has the order q modulo p, so 2^x is the residue 2^(x mod q), and
// 2^(x + y) = 2^x 2^y holds, as 2^(1/2) 2^(1/2) = 2 does.
//
// Whoever draws inputs at random, and finds two expressions equal, knows that they are the same
// function of the inputs but for a probability of (degree / q); docs/checker.md has the argument.
#pragma once

#include <cstdint>

namespace tessera::residue {

inline constexpr uint64_t p = 2147481143, q = 1073740571;

/// One value. All zero is the number 0; bytes of 0xff are nothing.
struct Value {
  enum class Kind : uint32_t { number = 0, residues = 1, nothing = 0xffffffff };
  Kind kind = Kind::number;
  uint32_t type =
      0;  // for whoever keeps values in memory (simulate/domain.h); no part of the value
  union {
    double number = 0;  // infinities too, never NaN
    struct {
      uint32_t mod_p, mod_q;
    };
  };
  [[nodiscard]] bool is_number() const { return kind == Kind::number; }
  [[nodiscard]] bool is_nothing() const { return kind == Kind::nothing; }
};
static_assert(sizeof(Value) == 16);

/// Of a quotient by 0, of what was never written: no expression of it is equal to anything.
inline Value nothing() {
  Value v;
  v.kind = Value::Kind::nothing;
  return v;
}
/// NaN is nothing.
Value number(double n);
/// Pairs that small whole numbers have are these numbers.
Value residues(uint64_t mod_p, uint64_t mod_q);

/// The residues of a value: of a finite number those of its fraction.
struct Pair {
  uint32_t mod_p = 0, mod_q = 0;
};
bool has_pair(const Value& v);
Pair pair_of(const Value& v);

Value add(const Value& a, const Value& b);
Value negative(const Value& a);
Value multiply(const Value& a, const Value& b);
Value divide(const Value& a, const Value& b);
/// 2^x.
Value power(const Value& x);

/// Whether both are the same value modulo p: of a power, and of what is made of it, what it is
/// modulo q has no meaning. Nothing is like nothing else.
bool same(const Value& a, const Value& b);

}  // namespace tessera::residue
