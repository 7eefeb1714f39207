// A term compiled for its value at one point: what a run evaluates at every event.
#pragma once

#include <optional>
#include <vector>

#include "term/term.h"

namespace tessera::check {

using term::Term;

/// Values of symbols by Symbol::index.
using Values = std::vector<int64_t>;

class Expression {
 public:
  Expression() = default;
  explicit Expression(Term t);

  /// Nothing where a value does not fit 64 bits, a divisor is below 1, or the term reads a memory.
  [[nodiscard]] std::optional<int64_t> operator()(const Values& values) const;
  /// Symbols that occur, by index, each once.
  [[nodiscard]] const std::vector<int>& symbols() const { return symbols_; }
  [[nodiscard]] bool empty() const { return code_.empty(); }

 private:
  struct Instruction {
    term::Op op;
    int64_t value;  // of a constant, or the symbol's index
  };
  void compile(Term t);

  std::vector<Instruction> code_;  // postfix
  std::vector<int> symbols_;
  bool reads_memory_ = false;
};

}  // namespace tessera::check
