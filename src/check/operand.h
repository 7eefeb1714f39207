// A matrix of a wgmma, traced to the tensor that was copied: through the descriptor, shared memory,
// swizzles and the boxes of the copies that filled it.
//
// One copy may fill it, or several: a panel each, a share from each block of a cluster, or rows of
// several tensors. Each place of the matrix is traced to the one copy that brings it.
#pragma once

#include "check/means.h"
#include "check/place.h"

namespace tessera::check {

/// What a product takes of an element x: x itself, high = round_tf32(x), or low = x - high.
enum class Part : uint8_t { whole, high, low };

struct Operand {
  core::MapId map;  // of the first copy, as the corners are
  const core::Op* writer = nullptr;
  Term k_corner, row_corner;  // of the box, in the tensor
  Term batch;                 // its index; null where the factor has none
  std::vector<Term> free;     // by dimension of the tensor: of Axis::free; null elsewhere
  bool zeros = true;          // all copies put zeros where a box leaves the tensor
  std::vector<int64_t> k;     // of each step of the instruction, from the corner
  std::vector<int64_t> rows;  // of each row of the matrix, from the corner
  std::vector<int> factors;   // of each row: the factor, of those that it may be of
  Part part = Part::whole;
  std::string fault;  // what contradicts the law of `fault_kind`, or empty
  std::string fault_expected, fault_found;
  std::string_view fault_kind = "k_agreement";
  std::string fault_help =
      "let the tensor map, the shared memory and the descriptor have one layout";
};

/// `rows` x `steps` elements that an op reads from `at`, which the copies at `writers` fill.
struct Reading {
  const core::Kernel& kernel;
  const Place& reader;
  const core::SharedAt& at;
  std::vector<const Place*> writers;
  int64_t rows, steps;
  Known known;              // what is known where it is read
  const ElementAt& factor;  // of the meaning
  const ElementAt& other;   // that it is multiplied with
  Axis row;                 // which of its indices the rows are
  /// The copies are of another turn than the reader, or stand in other loops: what `counter` of
  /// theirs was, where it is read. Null: both stand in the same loops and the same turn.
  Term counter = {}, as = {};
  bool other_loops = false;
  /// Factors of the meaning that rows may be of as well. They have the same axes as `factor`.
  std::vector<ElementAt> more = {};
};

/// Fills `out`; the answer is what could not be decided.
std::string trace(const Reading& reading, Operand& out);

}  // namespace tessera::check
