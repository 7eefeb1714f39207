// What the kernels of these tests are made of besides instructions.
#pragma once

#include "core/kernel.h"

namespace tessera::core::testing {

/// The accumulators of `groups` warpgroups, 64 of `rows` rows each; the same slots in the same
/// order are wgmma's first operand, 16 columns a step.
inline Layout fragment(int64_t rows, int64_t columns, int64_t groups) {
  return {IntTuple::tuple({IntTuple::flat({4, 8, 4, groups}), IntTuple::flat({2, 2, columns / 8})}),
          IntTuple::tuple(
              {IntTuple::flat({2 * rows, 1, 16, 64}), IntTuple::flat({rows, 8, 8 * rows})})};
}

/// The slots of a ring, used in turns: use n of it is of slot n % slots, in phase n / slots.
struct Ring {
  int slots = 1;
  [[nodiscard]] Term slot(Term n) const { return floor_mod(n, slots); }
  [[nodiscard]] Integers parity(Term n) const { return {{floor_mod(floor_div(n, slots), 2)}}; }
  /// Of the phase before: complete of a fresh barrier.
  [[nodiscard]] Integers parity_before(Term n) const {
    return {{floor_mod(floor_div(n, slots) + 1, 2)}};
  }
};

/// Functions of elements, as they are written.
struct Function {
  std::shared_ptr<pointwise::Dag> dag = std::make_shared<pointwise::Dag>();
  int operand(int i) const { return dag->add_operand(i); }
  int number(double v) const { return dag->add_constant(v); }
  int call(std::string_view f, std::vector<int> x) const { return dag->add_call(f, std::move(x)); }
  std::shared_ptr<pointwise::Dag> giving(int result) const {
    dag->results = {result};
    return dag;
  }
};

}  // namespace tessera::core::testing
