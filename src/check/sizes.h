// How often the loops of a kernel run, as symbols of their own.
//
// What a kernel synchronizes depends on its parameters through the numbers of turns of its loops
// alone: on `(K + 63) // 64`, not on K. A size stands for such a number. Terms that are rewritten
// have sizes in place of parameters, so that runs need values of sizes alone, and what holds for
// all values of the sizes holds for all parameters. Sizes vary independently of each other, also
// where the kernel's own cannot: that proves more than is asked.
//
// The blocks of a cluster run as one, with one value for each size. A block's index is written as
// that of its cluster, a parameter, and its rank; numbers of turns that depend on the rank are no
// sizes.
//
// A shifted term says the same by how many turns of a loop have been finished in all, instead of
// by the loops around it: turn * T + k becomes the count c of the loop over k. It is periodic in
// these counts, and constant in each counter from `steady` on. What a kernel does at a point then
// depends on finitely many values (machine.h).
//
// A loop may have another number of turns in each turn of the loop around it. That is one size,
// which varies; the sum of it over the turns before (core::Carried) plus k is the count c of
// finished turns all the same. Where numbers of turns are given, each turn has as many.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/kernel.h"

namespace tessera::check {

using term::Term;

struct Size {
  Term turns;   // of the kernel's parameters, and of counters of loops around, in normal form
  Term first;   // the same in the first turn of these
  Term symbol;  // stands for it
  Term count;   // finished turns of the loop that this is the size of
  int64_t least = 0;
  bool negative = false;  // not proved to be at least 0: a loop of it then runs no turn
  bool outer = false;     // some loop of another size stands within one of this size
  /// Of a size that has another value in each turn of the loop around: the sum of it over the turns
  /// before, and the same if all were alike. Empty: it has one value.
  Term sum, alike;
};

/// A loop of a size that is being run: its counter, and the place of its size in Sizes::all.
struct Running {
  Term counter;
  int size = -1;
};

class Sizes {
 public:
  /// From the loops of the kernel; symbols are added to its pool.
  explicit Sizes(const core::Kernel& kernel);

  [[nodiscard]] const std::vector<Size>& all() const { return all_; }
  /// `t` with sizes in place of what they stand for.
  Term rewrite(Term t);
  /// Whether a rewritten term depends on no parameter but sizes, and reads no memory.
  [[nodiscard]] bool of_sizes(Term t) const;
  /// Why values of the sizes do not give the rewritten term of `t` a value; empty where they do.
  [[nodiscard]] std::string why_not_exact(Term t, Term rewritten) const;
  /// A rewritten term where a size that varies is the same in each turn.
  Term alike(Term t);
  /// The size of a loop that runs 0 to it by steps of 1; -1: none, or another number of turns.
  [[nodiscard]] int size_of(const core::For& loop);
  /// How many turns the loop has: max(0, upper - lower), by steps rounded up.
  Term turns(const core::For& loop);

  struct Shifted {
    Term term;                     // null: `why` not
    std::vector<int64_t> periods;  // by size, in its count: at least 1
    int64_t steady = 0;            // in every counter: it has one value from here on
    std::string why;
  };
  /// Of a rewritten term in the body of `loops`, the outermost first; `done` are the sizes whose
  /// loops have been finished in the innermost body.
  /// `within`: of sizes, outer and inner, where the inner one's loop stands in the outer one's.
  Shifted shift(Term t, const std::vector<Running>& loops, const std::vector<int>& done,
                const std::vector<std::pair<int, int>>& within = {});

 private:
  void find(const core::Body& body, const std::vector<int>& around);
  void add(Term turns, bool negative);
  bool may_be_negative(Term t);
  Term by_cluster(Term t);
  Term rewrite_within(Term t);
  Term replace(Term t, const std::map<const term::Node*, Term>& by);
  Shifted periodic(Term t);
  [[nodiscard]] std::map<const term::Node*, Term> counts(
      const std::vector<Running>& loops, const std::vector<int>& done,
      const std::vector<std::pair<int, int>>& within);
  bool repeats(Term t, Term count, int64_t period);
  static std::optional<int64_t> steady_from(Term t, Term counter);

  term::Pool& pool_;
  Term block_;       // the block's index; empty where a cluster is one block
  Term in_cluster_;  // the same by its cluster and rank
  std::vector<Size> all_;
  std::set<const term::Node*> outer_;                   // counters of loops of sizes
  std::map<const term::Node*, core::Carried> carried_;  // by symbol
  std::map<const term::Node*, Term> rewritten_;
};

}  // namespace tessera::check
