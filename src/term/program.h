// Terms compiled for many points at once, and the walk over all points of a grid.
//
// Values are exact: an operation whose facts do not bound it within 64 bits is watched, and an
// overflow ends the walk.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "term/term.h"

namespace tessera::term {

/// The values first, first + step, ..., `count` of them.
struct Axis {
  Term leaf;
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 1;
};

class Program {
 public:
  static constexpr int block = 128;  // points at once
  using Register = std::array<int64_t, block>;

  /// Reads have invented values (evaluate.h). Both sides of a select are computed.
  explicit Program(const std::vector<Term>& outputs, uint64_t seed = 0);

  /// The leaves that occur, in the order of declaration.
  [[nodiscard]] const std::vector<Term>& inputs() const { return inputs_; }
  /// Operations a point: what a budget counts.
  [[nodiscard]] int64_t operations() const { return static_cast<int64_t>(code_.size()) + 1; }
  /// The register of an input, to be filled before run().
  Register& input(std::size_t i) { return registers_[i]; }
  /// False if some value did not fit 64 bits.
  bool run();
  [[nodiscard]] const Register& output(std::size_t i) const { return registers_[outputs_[i]]; }

 private:
  struct Instruction {
    Op op = Op::add;
    bool watched = false;  // may overflow
    bool small = false;    // operands of a division within [0, 2^31)
    int to = 0;
    int a = 0, b = 0, c = 0;
    std::optional<int64_t> immediate;  // the value of b, where it is a constant
    const Symbol* memory = nullptr;
    std::vector<int> indices;
  };
  void compile(Term t);
  bool execute(const Instruction& i);
  bool divide(const Instruction& i);
  bool arithmetic(const Instruction& i);
  void compare(const Instruction& i);
  void bits(const Instruction& i);
  void read(const Instruction& i);

  uint64_t seed_;
  std::vector<Term> inputs_;
  std::vector<int> outputs_;
  std::vector<Instruction> code_;
  std::vector<Register> registers_;
  std::map<const Node*, int> places_;
};

enum class Walk { done, stopped, overflowed };

/// Every point of the product of the axes, the last axis fastest, so in lexicographic order. Axes
/// have to name all inputs. `see(begin, count)` is called with blocks of the program's outputs
/// filled; false stops the walk.
Walk walk(Program& program, const std::vector<Axis>& axes,
          const std::function<bool(int64_t begin, int count)>& see);

/// The product of the counts; nullopt beyond 2^62.
std::optional<int64_t> points(const std::vector<Axis>& axes);
/// The values of a point, an axis each.
std::vector<int64_t> point(const std::vector<Axis>& axes, int64_t index);

}  // namespace tessera::term
