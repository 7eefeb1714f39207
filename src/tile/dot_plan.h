// How a product of tiles is laid on a matrix instruction.
//
// The instruction sums over k in any order, as long as A and B agree, and columns may be numbered
// in any way, as long as B and C agree. So the register layouts of A and C, whatever they are,
// decide which element of B each lane must supply, and from where in shared memory:
//
//   A's slots give k of (lane, step, slot): scores that a product left as C are its A next time,
//     with the keys in another order, and no element changes its thread;
//   C's slots give n of (lane, step, slot): a lane may own neighbouring columns and store them
//     as one vector;
//   what is contiguous for one lane is read as one vector.
#pragma once

#include "arch/mma.h"
#include "tile/program.h"

namespace tessera::tile {

/// One digit of a walk: `extent` steps of `step` along its axis, `weight` registers apart.
struct Digit {
  int64_t extent = 1;
  int64_t step = 1;
  int64_t weight = 1;
  int64_t memory = 0;  // elements of B's slot apart; 0 for digits of m
  friend bool operator==(const Digit&, const Digit&) = default;
};

struct DotPlan {
  const arch::Mma* by = nullptr;
  /// A's register of an instruction is the sum of a digit of each k_inner, m_inner, k_outer,
  /// m_outer; C's of n_inner and m_inner_c and n_outer and m_outer_c. Inner digits follow the
  /// instruction's register modes, outer ones are loops.
  std::vector<Digit> k_inner, m_inner, n_inner, m_inner_c;
  std::vector<Digit> k_outer, m_outer, n_outer, m_outer_c;
  /// B's place of a lane: modes of the lane, lowest first, in elements.
  std::vector<Digit> lane;
  /// k of a lane, for masks: modes of the lane, lowest first.
  std::vector<Digit> lane_k;
  /// One read of a lane: these digits, in the order of memory. With `transposed_rows` they are
  /// 8 x 8 matrices that ldmatrix.trans reads, one for each digit's value.
  std::vector<Digit> vector;
  bool transposed_rows = false;
  int64_t vector_elements = 1;
};

/// b as [K, N] or, when transposed, [N, K] in shared memory. Fails with TS0401 and what does not
/// fit.
Result<DotPlan> plan_dot(const arch::Mma& by, const Type& a, const Type& b, bool b_transposed,
                         const Type& c);

/// How many times longer the reads of B take than without bank conflicts (32 banks of 4 bytes, an
/// access of 16 bytes in four phases of 8 lanes): 1 is conflict-free.
int64_t read_conflicts(const DotPlan& p, int64_t element_bytes);

/// The digits of one lane's number: `lane / below % extent`.
int64_t lane_place(const std::vector<Digit>& modes, int64_t lane);

}  // namespace tessera::tile
