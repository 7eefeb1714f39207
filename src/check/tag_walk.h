// The tags of one role's registers, followed op by op; for the files that decide assertions alone.
//
// A loop is walked in its first turn, and in a later one: what a turn leaves is what the next one
// finds, with the counter less by one. Where both turns leave the same, all do. Of branches whose
// condition is open both sides are walked, and only what is the same after both is known.
#pragma once

#include <array>

#include "arch/wgmma.h"

#include "check/assertions.h"
#include "check/carried.h"
#include "check/origin.h"

namespace tessera::check {

/// What is known of an assertion so far.
struct Decided {
  bool reached = false;
  std::optional<Violation> refuted;
  std::string why;  // not decided somewhere
};

/// The tags that tensors have from the beginning.
struct TagOfTensor {
  const core::Op* op = nullptr;
  int name = 0;
  Term value;
  std::vector<Term> indices;  // the symbols that stand for them
};

/// What all roles share.
struct Tagging {
  const core::Kernel& kernel;
  const Runs& runs;
  std::vector<Place> places;
  std::vector<std::string> names;
  std::map<int, std::vector<TagOfTensor>> tensors;  // by tensor
  std::map<const core::Op*, Decided> decided;       // by assertion
  std::set<int> retagged;                           // shared memory whose tags are said anew
  Carried carried;
  std::set<const term::Node*> numbered;  // symbols that get numbers in a walk
  std::map<std::string, Term> offsets;   // symbols of places in boxes, by name
};

class TagWalk {
 public:
  /// `role`: null for the ops outside of roles.
  TagWalk(Tagging& shared, const core::Role* role);
  void run();

 private:
  using Id = Carried::Id;
  using Scalar = Carried::Scalar;
  struct State {
    std::vector<std::vector<Id>> registers;  // by registers: (warp * slots + slot) * 32 + lane
    std::map<int64_t, Id> stored;            // by the generic proxy to shared memory, by byte
    friend bool operator==(const State&, const State&) = default;
  };
  struct Turn {
    const core::For* loop = nullptr;
    bool first = false;
  };

  // tag_walk.cpp: control
  void body(const core::Body& b, const std::vector<int>& warps);
  void loop(const core::For& l, const std::vector<int>& warps);
  void forget(const core::Body& body, State& s);
  void branch(const core::If& i, const std::vector<int>& warps);
  std::optional<bool> decide(Term condition, int warp);
  State with(const State& s, const core::For& l, Term by);
  State either(const State& a, const State& b);
  void lose(const core::Body& b);
  Id& slot(int warp, core::RegistersId r, int64_t slot, int lane);
  std::vector<Id>& all_of(core::RegistersId r);
  int64_t& number(Term symbol);
  std::optional<int64_t> value(Term t);
  const Split& split(Term t);
  Scalar scalar(Term t) { return split_of(t)(tagging_.carried, numbers_); }
  Split& split_of(Term t);
  const Place& place(const core::Op& op) const { return *places_.at(&op); }
  [[nodiscard]] std::vector<const core::For*> later() const;

  // tag_walk_ops.cpp: what ops do with tags
  void declare(const core::Declare& d, const std::vector<int>& warps);
  void compute(const core::Op& op, const std::vector<int>& warps);
  void issue(const core::Op& op, const std::vector<int>& warps);
  void product(const core::Op& op, const std::vector<int>& warps);
  /// A cached one has a key, which is empty where it depends on what has been stored.
  std::vector<Id> side(const core::Op& op, std::string_view operand, int64_t rows, int64_t steps,
                       std::string& key);
  /// Of the sums of a wgmma that is n wide: slot, thread to m + 64 n.
  const std::vector<int64_t>& places_of_sums(const arch::Wgmma& w);
  void load_global(const core::Op& op, int warp);
  void load_shared(const core::Op& op, int warp);
  void store_matrices(const core::Op& op, int warp);
  void shuffle(const core::Op& op, int warp);
  void unknown_results(const core::Op& op, const std::vector<int>& warps);
  const Origins& origins_of(const core::Op& op, core::SharedId shared);
  /// The byte of an element by indices a mode, slots of a ring at 0.
  std::optional<int64_t> byte_at(const Origins& o, const core::SharedAt& at, int64_t row = 0,
                                 int64_t column = 0);
  Id of_byte(const Origins& o, core::SharedId shared, int64_t byte);
  Id of_box(const CopiedBox& box, const BoxIndex& at);
  Id of_tensor(core::TensorId t, const std::vector<Term>& corner, const std::vector<int64_t>& at,
               const void* key);

  // tag_walk_asserts.cpp
  void say(const core::Tag& t, const std::vector<int>& warps);
  void asserted(const core::Op& op, const std::vector<int>& warps);
  struct Side {
    Scalar value = Carried::none;
    std::array<int64_t, 8> numbers = {};  // of the symbols, in the assertion's order
  };
  struct Sides {
    std::vector<Term> here, there, both;  // symbols
    const Origins *here_from = nullptr, *there_from = nullptr;
    int name = 0;
  };
  bool sides(const core::Op& op, Sides& out);
  const Origins* seen_by(const core::Op& op, const core::SharedAt& at);
  void check(const core::Op& op, const Sides& s, int warp, int lane);
  Side side_at(const core::AssertTag& a, const core::Tagged& at, const Origins* from, int name,
               int warp, int lane);
  bool agree(const core::Op& op, const Sides& s, int warp, int lane, const std::vector<Side>& here,
             const std::vector<Side>& there);
  void refute(const core::Op& op, const Sides& s, int warp, int lane, const Side& bad,
              const Side* against, const std::string& where);
  void undecided(const core::Op& op, std::string why);
  [[nodiscard]] std::string text(Scalar s) const;
  std::string place_text(const core::AssertTag& a, const core::Tagged& at, const Side& s, int warp,
                         int lane);
  void explain(const core::Op* op, int name, int depth, Violation& v);

  Tagging& tagging_;
  const core::Kernel& kernel_;
  const core::Role* role_;
  int warps_ = 0;
  Term warp_;
  std::map<const core::Op*, const Place*> places_;
  State state_;
  std::vector<Turn> turns_;
  bool one_lane_ = false;
  std::vector<const core::Body*> bodies_;  // around
  Values numbers_;
  std::map<const term::Node*, Split> splits_;
  std::map<const term::Node*, Expression> expressions_;
  std::map<std::string, Origins> seen_;  // by reader, storage, and turns where they matter
  std::map<std::pair<const void*, int>, Split> box_tags_;
  std::map<std::string, std::vector<Id>> sides_;
  std::map<std::string, std::vector<Id>> products_;
  std::map<int64_t, std::vector<int64_t>> places_of_sums_;
  std::set<std::tuple<const core::Op*, const Origins*, const Origins*>> seen_alike_;
  std::map<std::string, std::optional<bool>> decisions_;
  std::map<int, std::vector<const core::Op*>> writers_;  // of registers: warp * slots + slot
};

}  // namespace tessera::check
