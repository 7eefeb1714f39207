// The walk through one turn of a loop over k (made.h).
#pragma once

#include <set>
#include <unordered_map>

#include "check/made.h"
#include "check/turn_walk.h"

namespace tessera::check {

class MadeOperands::Walk final : public TurnWalk {
 public:
  Walk(MadeOperands& all_walks, const core::Role& role, const core::For& loop);

  using Id = Formulas::Id;
  /// What a place of a matrix holds: a formula, at a lane.
  struct Held {
    Id value = Formulas::none;
    int lane = 0;
    Walk* walk = nullptr;  // whose formula it is
  };
  /// [row * steps + step]
  using Matrix = std::vector<Held>;
  /// A product's matrix, by its op, operand and warpgroup; nullptr: the walk did not come there.
  [[nodiscard]] const Matrix* matrix(const core::Op* product, bool is_a, int group) const;
  /// Nothing where the value is not followed.
  std::optional<Element> element(const Held& held);
  /// A slot of which a copy contradicts the law.
  [[nodiscard]] const Operand* faulty() const;

 private:
  void compute(const core::Compute& c, int warp) override;
  void issue(const core::Op& op, int warp) override;
  void lose(core::RegistersId registers, int warp) override;
  std::string needed(const core::Issue& issue) override;
  void load(const core::Op& op, int warp);
  void store(const core::Op& op, int warp);
  void product(const core::Op& op, int warp);
  void keep_left(const core::Op& op, const core::Slice& a, int warp, int64_t depth);
  void keep_right(const core::Op& op, const core::SharedAt& at, int warp, int64_t rows,
                  int64_t depth);
  Walk* maker(const core::Op& op, core::SharedId shared, const std::string& slot);
  Walk* walk_at(const Place& store);

  /// The slot of a ring that a reference names, as a text that other references to it have too;
  /// nothing where it depends on the lane.
  std::optional<std::string> slot_of(const core::SharedAt& at);
  /// The operand that a load's slot was copied from, as a number of `sources_`.
  std::optional<int> source(const core::Op& op, const core::SharedAt& at);
  Id& slot(int warp, core::RegistersId registers, int64_t at);

  MadeOperands& all_walks_;
  const Runs& runs_;
  const std::vector<Place>& all_;
  const Means& means_;
  const core::For& loop_;
  std::unordered_map<const core::Op*, const Place*> places_;
  Formulas formulas_;
  std::vector<std::vector<std::vector<Id>>> registers_;  // by warp, registers and slot
  std::map<std::pair<int, std::string>, std::map<std::pair<int64_t, int64_t>, Held>> shared_;
  std::map<const core::Op*, std::set<std::string>> stored_to_;  // slots, by the store
  std::vector<std::unique_ptr<Operand>> sources_;
  std::map<const core::Op*, int> source_of_;
  std::map<std::tuple<const core::Op*, bool, int>, Matrix> matrices_;
};

}  // namespace tessera::check
