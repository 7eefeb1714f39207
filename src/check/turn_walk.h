// One turn of a loop, walked for all its turns at once, in each warp of a role: what operands of
// products are made of (made.h, brought.h).
//
// Unrolled loops are walked turn by turn, and conditions on the warp choose warps. Of any other
// condition nothing is known: what is written under one holds nothing from there on. What an op
// does is the walk's own.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "check/expression.h"
#include "check/place.h"

namespace tessera::check {

class TurnWalk {
 public:
  std::string why;  // what could not be decided of the turn

 protected:
  TurnWalk(const core::Kernel& kernel, const core::Role& role);
  TurnWalk(const TurnWalk&) = delete;
  TurnWalk& operator=(const TurnWalk&) = delete;
  ~TurnWalk() = default;

  void turn(const core::For& loop);

  virtual void compute(const core::Compute& c, int warp) = 0;
  virtual void issue(const core::Op& op, int warp) = 0;
  /// Nothing is known any more of these registers, in a warp.
  virtual void lose(core::RegistersId registers, int warp) = 0;
  /// Why the issue may not stand where it is not known to happen; "": it may.
  virtual std::string needed(const core::Issue& issue) = 0;

  /// With the values of the warp and the counters that stand; nothing where others are in it.
  std::optional<int64_t> value(Term t);
  int64_t number(Term t);
  int64_t& symbol(Term leaf) { return values_[static_cast<std::size_t>(leaf->symbol->index)]; }
  void lose_results(const core::Issue& issue, int warp);
  bool fail(std::string reason) {
    if (why.empty()) why = std::move(reason);
    return false;
  }

  const core::Kernel& kernel_;
  const core::Role& role_;
  std::vector<const core::For*> unrolled_;  // around the op that is walked
  Values values_;                           // by symbol; below 0: none

 private:
  void body(const core::Body& b, const std::vector<int>& warps);
  void branch(const core::If& branch, const std::vector<int>& warps);
  void forget(const core::Body& b);

  std::unordered_map<const term::Node*, Expression> compiled_;
};

}  // namespace tessera::check
