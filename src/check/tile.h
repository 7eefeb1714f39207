// One tile of the output: from which elements of A and B a product reads, and where its sums go
// through registers and shared memory.
#pragma once

#include <unordered_map>

#include "arch/wgmma.h"

#include "check/means.h"
#include "check/place.h"
#include "check/runs.h"

namespace tessera::check {

/// A matrix of a wgmma, traced to the tensor that was copied.
struct Operand {
  core::MapId map;
  const core::Op* writer = nullptr;
  Term k_corner, row_corner;  // of the box, in the tensor
  std::vector<int64_t> k;     // of each step of the instruction, from the corner
  std::vector<int64_t> rows;  // of each row of the matrix, from the corner
  std::string fault;          // what contradicts the law, or empty
  std::string fault_expected, fault_found;

  /// Fills the rest; the answer is what could not be decided. `mn` x `steps` elements are read from
  /// `at`; `k_dim` is the tensor's dimension that is summed over.
  std::string trace(const core::Kernel& kernel, const Place& reader, const core::SharedAt& at,
                    const Place& from, int64_t mn, int64_t steps, const Known& known, int k_dim);

 private:
  std::string trace_elements(const core::Kernel& kernel, const core::SharedAt& at, int64_t start,
                             int64_t mn, int64_t steps, std::vector<int64_t> coordinates,
                             bool k_first);
};

/// The part of a turn after the loop over k, op by op for all warps of the role that computes.
class Tile {
 public:
  Tile(const core::Kernel& kernel, const std::vector<Place>& all, const core::Role& role,
       const core::Issue& product, int64_t period);
  /// What the next warpgroup's products read.
  void add_group(const Operand& a, const Operand& b) { groups_.emplace_back(a, b); }
  void run(const Means& means);

  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t columns() const { return columns_; }
  [[nodiscard]] const Place& last_store() const { return last_store_; }
  std::vector<Violation> violations;
  std::string why;  // what could not be decided

 private:
  struct Element {
    int64_t row = -1, column = -1;  // from the corners; -1: none
  };
  void body(const core::Body& b, const std::vector<int>& warps);
  void compute(const core::Op& op, const std::vector<int>& warps);
  void matrices(const core::Op& op, int warp);
  void copy_out(const core::Op& op, int warp);
  void issue(const core::Op& op, const std::vector<int>& warps);
  void turn();
  int64_t eval(Term t);
  int64_t in_turn(Term t);
  int64_t apart(const core::Op& op, int warp, Term corner, Term from);
  Element of_slot(int warp, int lane, int64_t slot);
  bool stored(const core::Op& op, int warp, int64_t byte, int64_t row, int64_t column,
              const core::TensorMap& map);
  void covered(const core::Op& op);

  const core::Kernel& kernel_;
  const core::Role& role_;
  const core::Issue& product_;
  const Means* means_ = nullptr;
  const core::For* turn_ = nullptr;
  const core::For* sums_ = nullptr;
  std::vector<std::pair<Operand, Operand>> groups_;
  std::vector<std::map<std::pair<int, int64_t>, int64_t>> slots_;  // by warp: a slot has this sum's
  std::unordered_map<int64_t, Element> shared_;                    // by byte
  std::vector<int> stored_;                                        // times, by element of the tile
  std::vector<int64_t> place_;  // of the accumulators: thread + 128 * slot to m + 64 * n
  std::unordered_map<const term::Node*, Expression> compiled_;
  Values values_;
  int64_t rows_ = 0, columns_ = 0;
  int64_t period_ = 1;
  int64_t turn_number_ = 0;
  bool by_turn_ = false;  // some place in shared memory depends on the turn
  Place last_store_;
};

}  // namespace tessera::check
