// One tile of the output: where the sums of a product go, and what is computed of them on their
// way, through registers and shared memory to the output.
//
// The part of a turn after the products is walked op by op for all warps of the role that computes,
// in every turn that differs from the others: a role may leave turns out.
// Every register slot and every place of shared memory holds a formula (formula.h); every store is
// compared with the meaning, element by element.
#pragma once

#include <set>
#include <unordered_map>

#include "arch/wgmma.h"

#include "check/formula.h"
#include "check/means.h"
#include "check/operand.h"
#include "check/place.h"
#include "check/promoted.h"
#include "check/runs.h"
#include "term/rules.h"

namespace tessera::check {

class Tile {
 public:
  Tile(const core::Kernel& kernel, const std::vector<Place>& all, const Place& product,
       const Runs& runs, const Means& means);
  /// Accumulators of the role, by a product that sums into them; those of a role lie in different
  /// registers. All of its products stand in one loop, and are equally wide. `to`: the registers
  /// that get their sums in turns of that loop; nullptr: none.
  void add_sums(const core::Issue& product, const Promotion* to) {
    sums_of_role_.push_back({&product, {}, to});
  }
  /// What the next warpgroup's products read, which sum into the accumulators added last.
  void add_group(const Operand& a, const Operand& b) {
    sums_of_role_.back().groups.emplace_back(a, b);
  }
  /// What numbers the output's batches where no operand has one.
  void set_batch(Term t) { bases_[batch_base] = term::simplify(t); }
  void run();

  [[nodiscard]] int64_t rows() const { return rows_; }
  [[nodiscard]] int64_t columns() const { return columns_; }
  [[nodiscard]] Term batch() const { return bases_[batch_base]; }
  [[nodiscard]] const Place& last_store() const { return last_store_; }
  /// By turn, whether the role makes its tile: Raster::taken.
  [[nodiscard]] const std::vector<bool>& taken() const { return taken_; }
  /// Ops that were followed.
  [[nodiscard]] const std::set<const core::Op*>& walked() const { return walked_; }
  [[nodiscard]] bool copies_its_own(const Runs& runs) const;
  /// Of elements: the tile's corner, and how many of a sum a turn of the loop adds up.
  [[nodiscard]] Term row() const { return bases_[row_base]; }
  [[nodiscard]] Term column() const { return bases_[column_base]; }
  [[nodiscard]] int64_t per_turn() const { return per_turn_; }
  std::vector<Violation> violations;
  std::string why;  // what could not be decided

 private:
  using Id = Formulas::Id;
  /// Who makes the tile: a role, or all warps of a kernel without roles.
  struct Crew {
    const core::Role* role = nullptr;
    int first_warp = 0, warps = 0;
    Term warp;
    const core::Body* body = nullptr;
  };
  static Crew crew_of(const core::Kernel& kernel, const core::Role* role);
  /// What indices are counted from: Elements::bases. Further ones are indices that are no number
  /// from any of these.
  enum Base : int { absolute, row_base, column_base, batch_base, bases };

  /// What a load or a store of registers does in global memory, for all lanes and turns.
  struct Global {
    core::TensorId tensor;
    core::RegistersId registers;
    Term first;                 // slot
    int64_t elements = 1;       // of a lane
    int along = -1;             // the dimension along which they lie
    std::vector<int> bases;     // by dimension
    std::vector<Term> offsets;  // by dimension: the index from there
    std::vector<Term> lanes;    // conditions on what is known
    bool bounded = false;       // what lies outside of the tensor is left out
  };

  // tile.cpp: the walk
  void turn();
  void body(const core::Body& b, const std::vector<int>& warps);
  struct Sums {
    const core::Issue* product;
    std::vector<std::pair<Operand, Operand>> groups;  // by warpgroup
    const Promotion* to = nullptr;
  };
  // tile_sums.cpp: sums of products
  void corners_of_products();
  void products(const std::vector<int>& warps);
  void summed(const Sums& sums);
  void forget();
  // tile_added.cpp: sums of elements
  void corners_of_elements();
  [[nodiscard]] const core::GlobalAt* loaded(const Place& p) const;
  Term first_index(const Place& access, const core::GlobalAt& at, int dimension);
  void extend(const Place& access, const core::GlobalAt& at, const ElementAt& element);
  void elements(const std::vector<int>& warps);
  [[nodiscard]] std::set<core::RegistersId> written_in_sums() const;
  Id before(core::RegistersId registers, int64_t slot);
  Id added_up(int warp, Id now, Id start, Id from);
  bool may_write(core::RegistersId registers);
  void compute(const core::Op& op, const std::vector<int>& warps);
  void issue(const core::Op& op, const std::vector<int>& warps);
  const Expression& compiled(Term t);
  int64_t eval(Term t);
  int64_t in_turn(Term t);
  [[nodiscard]] bool stopped() const { return !why.empty() || !violations.empty() || split_; }
  int64_t& value_of_symbol(Term leaf) {
    return values_[static_cast<std::size_t>(leaf->symbol->index)];
  }
  Id& slot(int warp, core::RegistersId registers, int64_t slot);

  // tile_shared.cpp: through shared memory
  struct Held {
    Id value = Formulas::none;
    int lane = 0;
    int half = 0, halves = 0;  // of the element's 16 bits each
    int warp = -1;             // that stored it in this turn; -1: none has
  };
  void hold(int64_t byte, int64_t size, Id value, int lane, int warp);
  [[nodiscard]] Held held(int64_t byte, int64_t size) const;
  void matrices(const core::Op& op, int warp);
  void vectors(const core::Op& op, int warp);
  void copy_out(const core::Op& op, int warp);

  // tile_global.cpp: loads and stores of registers
  const Global* global(const core::Op& op);
  void index_of(const Place& p, const core::GlobalAt& at, Global& out);
  bool lies_inside(const Place& p, const core::GlobalAt& at, const Global& g,
                   const std::vector<bool>& bounded);
  [[nodiscard]] std::string from_base(int base, Term offset) const;
  bool is_inside(Term extent, int base, Term offset, int64_t last);
  bool holds(const Place& p, Term claim, const std::string& message, const std::string& expected);
  bool conditions(const Place& p, const core::GlobalAt& at, Global& out,
                  std::vector<bool>& bounded);
  [[nodiscard]] bool known_at(const Place& p, Term t) const;
  void load(const core::Op& op, int warp);
  void store(const core::Op& op, int warp);
  bool lanes_of(const Global& g, std::vector<int64_t>& at, std::vector<bool>& active);

  // tile_stored.cpp: what is stored against what is meant
  static Base base_of(Axis axis);
  void count_bases();
  [[nodiscard]] int output_of(core::TensorId tensor) const;
  bool stored(const core::Op& op, int warp, int lane, Id value, int64_t row, int64_t column,
              int output);
  bool other_function(const core::Op& op, int warp, int lane, Id value, Id sum, int output);
  bool may_be_same(Id value, Id wanted);
  bool may_be_whole(Id value);
  Id sum_at(Id value, int lane, int64_t row, int64_t column);
  Id wanted(Id sum, int output);
  std::string text(Id f, int lane, Id sum);
  bool corner(const core::Op& op, int warp, const Index& index, Term at, int64_t& off);
  bool at_batch(const core::Op& op, int warp, const Index& index, int64_t off);
  void covered();
  void left_out();

  // tile_elementwise.cpp: functions of elements, which sum nothing
  void corners_of_functions();
  [[nodiscard]] const core::GlobalAt* stored_at(const Place& p) const;
  bool stored_function(const core::Op& op, int warp, Id value, const Elements& place,
                       const std::vector<bool>& active, int output);

  // tile_parts.cpp: parts of the columns, and remainders of indices
  /// The tile's corner lies in [first, end), a part of the columns; end -1: there is none.
  struct Part {
    int64_t first = 0, end = -1;
  };
  void find_parts();
  void walk_parts();
  void find_remainders();
  std::optional<int64_t> remainder(Base base, int64_t modulus) const;
  std::optional<std::pair<int, int64_t>> placed(const Index& index, int64_t row, int64_t column);
  const Case* case_of(const Elements& sum, int output);
  bool holds(const ColumnBound& c, int64_t column);
  std::optional<int64_t> known(Term t);
  std::optional<bool> about_columns(Term condition);
  bool corner_below(int64_t bound);
  int64_t condition(Term t);
  bool refute(const core::Op& op, int warp, std::string lanes, std::string message,
              std::string expected, std::string found, std::string help);
  /// Those around what is walked.
  [[nodiscard]] std::vector<const core::For*> loops() const {
    return turn_ == nullptr ? std::vector<const core::For*>() : std::vector{turn_};
  }

  const core::Kernel& kernel_;
  const Means& means_;
  const Crew role_;
  const Place& product_;  // or, of a sum of elements, one of its loads; of no sum, a store
  const core::For* turn_ = nullptr;  // null: the role makes one tile, in no loop
  const core::For* sums_ = nullptr;
  std::unordered_map<const core::Op*, const Place*> places_;
  std::vector<Sums> sums_of_role_;
  std::vector<Term> bases_ = std::vector<Term>(bases);  // null: there is none
  std::vector<std::pair<int, int64_t>>
      counted_;  // by base: which one loads count from, and how far
  std::map<std::pair<Base, int64_t>, int> remainders_;  // of corners by a modulus: their base
  std::vector<Part> parts_ = {{}};
  Part part_;                 // the one that is walked
  std::set<int64_t> splits_;  // bounds of parts that conditions of the kernel have
  bool split_ = false;        // one was found: the walk begins anew
  Formulas formulas_;
  std::vector<std::vector<std::vector<Id>>> registers_;  // by warp, registers and slot
  std::vector<Held> shared_;                             // of 16 bits, by byte / 2
  std::vector<std::vector<int>> stored_;                 // times, by output and element of the tile
  std::vector<const core::Op*> last_stores_;             // by output
  std::map<std::pair<Id, int>, Id> wanted_;              // by sum and output
  std::map<const core::Op*, Global> globals_;
  std::set<const core::Op*> walked_;
  std::set<core::RegistersId> written_before_;    // the loop of turns
  bool before_turns_ = false, one_lane_ = false;  // where the walk is
  std::vector<int64_t> place_;  // of the accumulators: thread + 128 * slot to m + 64 * n
  std::unordered_map<const term::Node*, Expression> compiled_;
  std::unordered_map<const term::Node*, Term> simple_;
  Values values_;
  int64_t rows_ = 0, columns_ = 0;
  int64_t per_turn_ = 0;
  int sum_base_ = -1;    // of the elements of a turn of the loop that adds them up
  bool adding_ = false;  // the walk is in that loop
  int64_t turns_ = 1;    // that may differ: from there on they repeat
  int64_t turn_number_ = 0;
  bool multiplied_ = false;  // in this turn
  std::vector<bool> taken_;
  bool by_turn_ = false;  // some place in shared memory depends on the turn
  Place last_store_;
};

}  // namespace tessera::check
