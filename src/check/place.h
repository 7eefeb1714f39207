// An op with what stands around it, and the value of terms there.
#pragma once

#include <array>
#include <map>
#include <set>

#include "check/expression.h"
#include "core/kernel.h"

namespace tessera::check {

struct Place {
  const core::Op* op = nullptr;
  const core::Role* role = nullptr;
  std::vector<const core::For*> loops;  // that are not unrolled, the outermost first
  std::vector<const core::For*> unrolled;
  std::vector<const core::If*> branches;
  std::size_t outside = 0;  // so many of the branches stand around the innermost of `loops`
  [[nodiscard]] const core::Issue& issue() const { return *op->as<core::Issue>(); }
};

/// Instructions and computations, in the order of the text.
std::vector<Place> places(const core::Kernel& kernel);

/// Whether an instruction outside of these roles writes global memory.
bool stores_elsewhere(const std::vector<Place>& all, const std::set<const core::Role*>& roles);

/// Values of coordinates and unrolled counters.
using Known = std::map<const term::Node*, int64_t>;
/// The value of a term that depends on nothing else, also after simplification.
std::optional<int64_t> value_of(Term t, const Known& known);
/// An argument of an instruction by its operand's name; nullptr: none, or of another kind.
template <class T>
const T* argument(const core::Issue& issue, std::string_view operand) {
  for (std::size_t i = 0; i < issue.form->operands.size() && i < issue.arguments.size(); ++i)
    if (issue.form->operands[i].name == operand) return std::get_if<T>(&issue.arguments[i]);
  return nullptr;
}

/// An index a dimension of a tensor map, dimension 0 first; the rest is 0.
using BoxIndex = std::array<int64_t, 5>;
/// The element of a box that lies at a byte of shared memory; nothing outside of the box. `start`:
/// its first byte, before the swizzle.
std::optional<BoxIndex> box_element(const core::Kernel& kernel, const core::TensorMap& map,
                                    int64_t start, int64_t byte);

/// `t` with numbers in the place of symbols.
Term with_values(Term t, const Known& known);
/// `t` with `by` in the place of a symbol.
Term with_term(Term t, Term symbol, Term by);
/// Values of the counters of unrolled loops, in the order of execution: one empty where there are
/// none.
std::vector<Known> turns_of(const std::vector<const core::For*>& unrolled);

}  // namespace tessera::check
