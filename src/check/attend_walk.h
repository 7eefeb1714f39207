// The walk of a role that computes attention: op by op, for all warps, lanes and registers, in the
// first turns of the loop over keys.
//
// What a turn does is the same from the third on: a term is given a value by the turn alone where
// it is proved to keep it from then on. A turn's outcome depends on the turns before the last one
// only by which of their keys were taken in: if those are the same keys in each of them
// (Online::as_of), two turns that leave like states stand for all that follow.
//
// Warps are walked in the order of the text. In which order two of them come to one place of shared
// memory is not known from that: where it matters, what is there is not followed.
#pragma once

#include "check/attend_products.h"

namespace tessera::check {

class AttendWalk {
 public:
  /// The meaning's scale and cap are what the results are held to.
  AttendWalk(const core::Kernel& kernel, AttendProducts& products, SeenKeys& seen, Online& online,
             const Attention& means);
  /// Walks turns, and after each of the first ones what follows the loop. False where something is
  /// refuted or not known: told to the products.
  bool run();
  /// The op that first took a difference of greatest scores which may be -inf - -inf; null: none.
  [[nodiscard]] const core::Op* needing() const { return needing_; }

 private:
  using Id = Online::Id;
  static constexpr int lanes = 32;
  /// What a register holds: of sums over values, of this column of V; of scores, the sixteenths of
  /// the depth that are summed.
  struct Cell {
    Id value = Online::none;
    int column = -1;
    uint64_t depth = 0;
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  using Registers = std::vector<std::vector<std::vector<Cell>>>;
  /// An op of a warp that wrote, or read, a place of shared memory.
  struct Access {
    const core::Op* op = nullptr;
    int warp = -1;
  };
  /// 16 bits of shared memory.
  struct Kept {
    Cell cell;
    Access writer, reader;                  // the last ones
    const core::Op* overwritten = nullptr;  // that another warp than the writer wrote
    bool many_readers = false;
  };
  /// By warp and registers: lane + 32 * slot.
  struct State {
    Registers registers;
    std::vector<Kept> shared;  // by byte / 2
  };
  /// A term compiled, and whether it keeps one value from the third turn on.
  struct Compiled {
    Expression expression;
    enum class Turn : uint8_t { not_asked, keeps, varies } turn = Turn::not_asked;
  };

  bool give_up(std::string why);
  bool body(const core::Body& b, const std::vector<int>& warps);
  bool one(const core::Op& op, const std::vector<int>& warps);
  bool branch(const core::Op& op, const std::vector<int>& warps);
  bool guarded(const core::If& branch, const std::vector<int>& warps);
  bool compute(const core::Op& op, const std::vector<int>& warps);
  bool issue(const core::Op& op, const std::vector<int>& warps);
  void product(const core::Op& op, const std::vector<int>& warps);
  void scores(const core::Issue& issue, const AttendProducts::Product& p, int group);
  void values(const core::Issue& issue, const AttendProducts::Product& p, int group);
  std::vector<Id> weights(const core::Issue& issue, int64_t first, const AttendProducts::Product& p,
                          int group);
  void shuffle(const core::Issue& issue, int warp);
  void matrices(const core::Op& op, int warp);
  void keep(const core::Op& op, int warp, int64_t byte, const Cell& cell);
  const Cell& taken(const core::Op& op, int warp, std::size_t half);
  bool leaves_results(const core::Issue& issue);
  void copy_out(const core::Op& op, int warp);
  void forget(const core::Issue& issue, int warp);
  /// Where a load of the mask tensor takes its elements from, beside the tile's first query and the
  /// turn's first key.
  struct MaskLoad {
    enum class Along : uint8_t { row, key, neither };
    std::vector<Term> offsets;  // by dimension
    std::vector<Along> along;
    int64_t elements = 1;
    int contiguous = -1;  // the dimension of neighbours
  };
  const MaskLoad* mask_load(const core::Op& op);
  bool only_bounds(const core::Issue& issue, const core::GlobalAt& at);
  bool offsets_of(const core::Op& op, const core::GlobalAt& at, MaskLoad& out);
  void load(const core::Op& op, int warp);
  std::optional<std::string> mask_fails(const Online::Value& score);
  bool whole(const std::vector<Cell>& operands);
  bool column_of(const std::vector<Cell>& operands, int& column);
  bool told(const core::Op& op, int warp, int lane);
  void stored(const core::Op& op, int warp, Cell cell, int64_t row, int64_t column);
  bool covered(int turns);
  bool ended(core::Body::const_iterator from, core::Body::const_iterator to,
             const std::vector<int>& warps);
  bool settled(Registers& out, int turn);
  bool keeps(Term t, Compiled& of);
  [[nodiscard]] bool varies(Term t) const;
  static bool leaves_alone(const core::Body& b);
  bool coordinates(const core::SharedAt& at, std::vector<int64_t>& out);
  std::optional<int64_t> eval(Term t);
  Cell operand(const std::variant<core::Run, Term>& in, int64_t step, int warp, int lane);
  std::vector<Cell>& slots(int warp, core::RegistersId registers);
  Cell& slot(int warp, int lane, core::RegistersId registers, int64_t slot);
  int64_t& value_of_symbol(Term leaf) {
    return values_[static_cast<std::size_t>(leaf->symbol->index)];
  }
  [[nodiscard]] bool known(const Expression& e) const;

  const core::Kernel& kernel_;
  AttendProducts& products_;
  SeenKeys& seen_;
  Online& online_;
  double scale_;  // what powers of 2 have to multiply scores with, or their tanh
  double inner_;  // what a tanh of scores has to take them times; 0: there is none
  const Attention& means_;
  std::unordered_map<const core::Op*, MaskLoad> mask_loads_;
  uint64_t whole_depth_;
  State state_;
  Values values_;
  int turn_ = 0;         // of the loop over keys; behind it: how many there were
  bool behind_ = false;  // the loop
  bool one_lane_ = false;
  bool failed_ = false;
  bool masking_ = false;     // in a branch that depends on the launch
  std::vector<int> stored_;  // times, by row and column
  const core::Op* last_store_ = nullptr;
  core::SharedId results_;            // where results lie on their way out
  std::map<std::size_t, Term> slot_;  // of it, by dimension: of the tile's turn
  const core::Op* needing_ = nullptr;
  std::string varying_;  // the first term whose value is not known as it may vary from turn to turn
  std::unordered_map<const term::Node*, Compiled> compiled_;
  std::unordered_map<const term::Node*, std::optional<Condition>> conditions_;
};

}  // namespace tessera::check
