// What a bounded access of registers is conditional on, and whether what it touches lies in its
// tensor.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/place.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {

constexpr term::Effort effort_of_a_bound = {.operations = 1 << 18};

inline bool same(term::Term a, term::Term b) {
  return a == b || term::simplify(a) == term::simplify(b);
}

/// What all has to hold where an operand of 1 and 0 (`inside`) is 1; what always holds is left out.
inline std::vector<term::Term> conditions_of(term::Term inside) {
  term::Pool& pool = inside.pool();
  const bool chooses = inside->op == term::Op::select && inside->args[1] == pool.constant(1) &&
                       inside->args[2] == pool.constant(0);
  std::vector<term::Term> open = {
      chooses ? inside->args[0]
              : term::simplify(pool.must(term::Op::not_equal, {inside, pool.constant(0)}))};
  std::vector<term::Term> out;
  while (!open.empty()) {
    const term::Term t = open.back();
    open.pop_back();
    if (t->op == term::Op::logical_and)
      open.insert(open.end(), t->args.rbegin(), t->args.rend());
    else if (t->op != term::Op::truth || t->value == 0)
      out.push_back(t);
  }
  return out;
}

/// An access of registers in global memory, by a lane: so many elements that lie side by side along
/// a dimension (-1: none has them so), and of which dimensions it leaves out what lies beyond.
struct Reach {
  const core::GlobalAt* at = nullptr;
  int64_t count = 1;
  int along = -1;
  std::vector<bool> bounded;
};

/// That all elements of it lie in the tensor, as a predicate, where it is not bounded.
term::Term stays_inside(const core::Kernel& kernel, const Reach& r);
/// What is not known of the access for all launches, that an index is at least 0 or below its
/// extent; nothing where all elements lie in the tensor.
std::optional<term::Term> unproved_bound(const core::Kernel& kernel, const Reach& r);
/// The first access by threads, of those that are not in `followed`, of which that is not known, as
/// a text; "" where there is none.
std::string open_bound(const core::Kernel& kernel, const std::vector<Place>& all,
                       const std::set<const core::Op*>& followed);

}  // namespace tessera::check
