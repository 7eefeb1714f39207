// What the threads of a role bring to shared memory: elements of tensors that they load into
// registers, and store there as they are.
//
// One turn of the loop around the stores is walked, for all turns at once. A slot of registers
// holds zero, an element that a load of this turn brought, or what is not followed. Of a load each
// lane has an index of its own; a bounded one keeps what the registers have where its element lies
// outside of the tensor. That the stores of a turn come before what reads them, the runs prove.
// A load that is not known to stay in its tensor is tried in small launches.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "check/runs.h"
#include "check/turn_walk.h"

namespace tessera::check {

/// A load of registers from a tensor.
struct BroughtLoad {
  core::TensorId tensor;
  int64_t count = 1;                // elements of a lane
  int along = -1;                   // the dimension along which they lie
  std::vector<Term> base;           // by dimension: the index at lane 0, warp 0 and counters 0
  std::vector<Expression> offsets;  // by dimension: from there, of lane, warp and counters
  std::vector<bool> bounded;        // by dimension: what lies beyond the extent is left out
  bool over_zeros = true;           // the registers held zero, which stays where it is left out
};

/// An element in shared memory: its row and column, and what it is of.
struct BroughtElement {
  int64_t row = 0, column = 0;
  const BroughtLoad* load = nullptr;
  std::vector<int64_t> at;  // by dimension, from the load's base
};

/// What a store does in one of its warps, at values of the counters around it.
struct BroughtStore {
  Known turn;
  std::vector<BroughtElement> elements;
};

/// A load that leaves its tensor, and a launch in which it does.
struct BroughtFault {
  const core::Op* load = nullptr;
  std::string message, expected, found;
};

class Brought final : public TurnWalk {
 public:
  /// `loops`: around the stores, the outermost first; a turn of the last one is walked.
  Brought(const core::Kernel& kernel, const core::Role& role,
          const std::vector<const core::For*>& loops);
  std::optional<BroughtFault> fault;
  [[nodiscard]] const std::vector<BroughtStore>& stores(const core::Op* store) const;

 private:
  /// A slot of registers, for all lanes of a warp.
  struct Value {
    enum class Kind : uint8_t { other, zero, element } kind = Kind::other;
    BroughtLoad* load = nullptr;
    std::shared_ptr<const std::vector<int64_t>> at;  // lane + 32 * dimension
    int64_t n = 0;                                   // of the load's elements
  };

  void compute(const core::Compute& c, int warp) override;
  void issue(const core::Op& op, int warp) override;
  void lose(core::RegistersId registers, int warp) override;
  std::string needed(const core::Issue& issue) override;
  void load(const core::Op& op, int warp);
  void store(const core::Op& op, int warp);
  BroughtLoad* load_of(const core::Op& op);
  bool conditions(const core::Op& op, const BroughtLoad& load, const core::GlobalAt& at,
                  std::vector<bool>& bounded);
  bool lies_inside(const core::Op& op, const BroughtLoad& load, const core::GlobalAt& at);
  bool open(const core::Op& op, const BroughtLoad& load, const core::GlobalAt& at, std::string why);
  [[nodiscard]] bool known_at(Term t) const;
  Value& slot(int warp, core::RegistersId registers, int64_t at);

  const std::vector<const core::For*> loops_;
  std::map<std::pair<int, int>, std::vector<Value>> registers_;  // by warp and registers
  std::map<const core::Op*, std::unique_ptr<BroughtLoad>> loads_;
  std::map<const core::Op*, std::vector<BroughtStore>> stores_;
};

/// Whether what the op at `reader` reads of a storage was stored by threads of other roles alone,
/// which load from tensors in the loop around the store.
bool brought_by_other_roles(const Runs& runs, const std::vector<Place>& all, const Place& reader,
                            core::SharedId shared);

}  // namespace tessera::check
