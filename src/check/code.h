// A kernel as straight code with jumps, a piece a role: what a run steps through. Terms are
// compiled twice: by sizes and counters, for runs of given numbers of turns, and shifted (sizes.h),
// for the runs that stand for all.
#pragma once

#include "check/expression.h"
#include "check/sizes.h"

namespace tessera::check {

struct Value {
  Expression exact;
  Expression shifted;
};

struct Instruction {
  /// elect: before an elected part, which begins by a meeting of the warp's lanes.
  enum class Kind : uint8_t {
    issue,
    compute,
    declare,
    elect,
    enter,
    test,
    next,
    branch,
    jump,
    end
  };
  Kind kind = Kind::end;
  const core::Op* op = nullptr;
  bool elected = false;       // one lane of each warp alone
  bool outer = false;         // of loops: of a size with others within
  bool perhaps = false;       // it may be left out, by what it does not know
  int target = 0;             // test, branch: where it goes on when it fails; next, jump: always
  int counter = -1;           // of loops: Symbol::index
  int size = -1;              // of loops: place in Sizes::all, or -1
  std::vector<Value> values;  // enter, test, next: lower, turns, step; branch: condition
  std::vector<std::vector<Value>> arguments;  // of an instruction; empty where no effect needs them
  struct Slots {
    int64_t taken = 0, all = 0;
  };
  std::vector<Slots> slots;  // by argument: of registers, how many it takes, and how many there are
  int64_t times = 1;  // turns of an unrolled loop in one, each with the slots behind the last one's
  std::vector<Running> loops;  // that it stands in, of sizes
  std::vector<Term> counters;  // of all loops that it stands in
};

/// What the warps of a role execute, ops outside of roles among it.
struct Piece {
  std::string name;
  int first_warp = 0;
  int warps = 0;
  int warp_symbol = -1;  // of the warp's place in the role
  std::vector<Instruction> instructions;
  std::size_t quiet = 0;  // no loop and no access of shared memory stands from here on
  std::size_t idle = 0;   // whoever is here, or behind it, does nothing more but to pass turns
};

struct Program {
  std::vector<Piece> codes;
  std::vector<int64_t> periods;      // of shifted terms, by size, in its count
  int64_t steady = 0;                // they have one value from here on, in every counter
  std::vector<int> shifted_symbols;  // that occur in them, by index
  std::string not_shifted;  // why there is no proof for all sizes; empty: shifted values are there
  std::string not_exact;    // why numbers of turns alone do not say what a run does; else empty
  std::string unsupported;  // an op whose synchronization is not modelled
  const core::Op* unsupported_at = nullptr;
};

Program compile(const core::Kernel& kernel, Sizes& sizes);

}  // namespace tessera::check
