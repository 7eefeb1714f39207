// Which terms a kernel's text computes once and by name, and where.
//
// A term that is used more than once has a local variable. It stands before the first op that uses
// it, in the innermost body that has all uses, or outside of loops whose counter it does not have.
// It never leaves a branch or a role: others would compute it for nothing.
//
// A division takes some hundred cycles, and what waits for it is often what everybody waits for.
// So a costly term has a variable also where it is used once, and leaves branches, but for those
// that the counter of a loop that changes it decides. It is computed before the last wait ahead of
// its first use, while the threads have nothing to do, or else at the beginning of the body.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "core/kernel.h"

namespace tessera::lower {

using term::Term;

/// A term that an op needs, and what a variable for it would be called.
struct Wanted {
  Term term;
  std::string hint;
};

/// A body, or the loop over the elements of a compute.
using Scope = const void*;

class Uses {
 public:
  /// `wanted(op)`: the terms of the op itself, without its bodies; for a compute, those that have
  /// no element in them. `of_element(compute)`: the others. `counted(loop, term)`: the loop has a
  /// variable for the term. `costly(term)`: it is to be computed early, and may be where no branch
  /// around a use has been taken.
  Uses(
      const core::Kernel& kernel, std::function<std::vector<Wanted>(const core::Op&)> wanted,
      std::function<std::vector<Wanted>(const core::Compute&)> of_element,
      std::function<bool(const core::For&, Term)> counted,
      std::function<bool(Term)> costly = [](Term) { return false; });

  /// The variables to declare in `scope` before its op number `at`, arguments before what uses
  /// them.
  [[nodiscard]] std::vector<Wanted> before(Scope scope, int at) const;
  /// Every symbol that some term has.
  [[nodiscard]] const std::set<const term::Symbol*>& symbols() const { return symbols_; }

 private:
  struct Level {
    int parent = -1;
    int index = 0;  // of the op in the parent that this is the body of
    int depth = 0;
    std::vector<const term::Symbol*> binds;  // the counter and sums of a loop, the warp of a role
    bool loop = false;
    const core::For* of = nullptr;
    Term condition;                    // of a branch
    bool role = false;                 // or the whole kernel
    const core::Body* body = nullptr;  // of a role, a loop or a branch
  };
  struct Use {
    int level = -1;
    int index = 0;
    int count = 0;
    std::string hint;
  };
  /// A term, and the innermost level that gives a symbol of it its meaning: the same counter may
  /// run in two loops. Users come first.
  using Key = std::pair<int32_t, int>;
  int enter(Scope scope, int parent, int index, const std::vector<Term>& binds, bool loop);
  int binder(Term t, int level);
  bool has_bound(Term t, const Level& l);
  [[nodiscard]] bool is_counted(Term t, int level) const;
  void walk(const core::Body& body, int level);
  void use(const Wanted& w, int level, int index);
  Use& add_use(Term t, int level, int index);
  void meet(Use& u, int level, int index) const;
  void lift(int& level, int& index) const;
  void lift_early(Term t, int& level, int& index);
  void settle();
  bool has(Term t, const term::Symbol* s);

  std::vector<Level> levels_;
  std::map<Scope, int> numbers_;
  std::map<Key, std::pair<Term, Use>, std::greater<>> uses_;
  std::map<std::pair<int, int>, std::vector<Wanted>> placed_;
  std::set<const term::Symbol*> symbols_;
  std::map<std::pair<const term::Node*, const term::Symbol*>, bool> has_;
  std::function<std::vector<Wanted>(const core::Op&)> of_op_;
  std::function<std::vector<Wanted>(const core::Compute&)> of_element_;
  std::function<bool(const core::For&, Term)> counted_;
  std::function<bool(Term)> costly_;
};

}  // namespace tessera::lower
