// Index terms compiled for one evaluation at a time, with symbols in a frame of integers.
//
// A symbol's place in a frame is its Symbol::index. Both sides of a select are computed; a divisor
// below 1 on the side that is not taken does no harm.
#pragma once

#include <array>
#include <vector>

#include "core/kernel.h"
#include "term/term.h"

namespace tessera::simulate {

using Frame = std::vector<int64_t>;

struct Overflow {};

class Expression {
 public:
  Expression() = default;
  /// Nothing if the term reads a memory: a kernel has no such state.
  static std::optional<Expression> compile(term::Term t);

  /// Throws Overflow where a value does not fit 64 bits, also on the side of a select that is not
  /// taken.
  [[nodiscard]] int64_t operator()(const Frame& frame) const;
  /// Whether the value depends on this symbol.
  [[nodiscard]] bool uses(const term::Symbol* s) const;
  [[nodiscard]] const std::vector<const term::Symbol*>& symbols() const { return symbols_; }
  [[nodiscard]] bool empty() const { return steps_.empty(); }

 private:
  struct Step {
    term::Op op = term::Op::constant;
    int a = 0, b = 0, c = 0;
    int64_t value = 0;  // a constant, or the place of a symbol
  };
  static constexpr int small = 96;
  void evaluate(const Frame& frame, int64_t* values) const;

  std::vector<Step> steps_;  // arguments first; the last is the value
  std::vector<const term::Symbol*> symbols_;
};

}  // namespace tessera::simulate
