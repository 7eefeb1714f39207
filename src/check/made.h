// Operands of products that threads make: elements that they load from shared memory, take apart,
// and hold in registers or store to shared memory again. The threads are those that multiply, or
// those of another role.
//
// One turn of the loop over k is walked, for all turns at once, of each role by itself. Registers
// and places of shared memory that were written in the turn hold formulas (formula.h) of elements,
// by lane; what an element is, its row and its k, is traced as that of an operand is (operand.h).
// Which stores and copies a read sees, and that they are of the same turn, the runs have proved.
#pragma once

#include <map>
#include <memory>

#include "check/formula.h"
#include "check/means.h"
#include "check/operand.h"
#include "check/place.h"
#include "check/runs.h"

namespace tessera::check {

/// How a place's value is of an element: what it is of, its row and its k from the corners there.
struct MadeElement {
  const Operand* of = nullptr;  // the whole slot that it was loaded from
  Part part = Part::whole;
  int64_t row = 0, k = 0;
  int factor = 0;
  bool other = false;  // known to be no element, and no part of one
};

/// Whether what an op reads of a storage was stored by threads.
bool stored_by_threads(const Runs& runs, const std::vector<Place>& all, const Place& reader,
                       core::SharedId shared);

class MadeOperands {
 public:
  MadeOperands(const core::Kernel& kernel, const Runs& runs, const std::vector<Place>& all,
               const Means& means);
  /// The operand that the warpgroup's product reads: "a" or "b". The answer is what could not be
  /// decided.
  std::string operand(const Place& product, std::string_view name, int group, Operand& out);

 private:
  class Walk;
  using Element = MadeElement;
  /// The walk through a role's loop; nullptr: it is under way.
  std::shared_ptr<Walk> walk(const core::Role& role, const core::For& loop);
  static void begin(const Element& e, std::size_t size, int64_t depth, Operand& out);
  static void take(const Element& e, std::size_t i, int64_t depth, Operand& out);

  const core::Kernel& kernel_;
  const Runs& runs_;
  const std::vector<Place>& all_;
  const Means& means_;
  std::map<const core::For*, std::shared_ptr<Walk>> walks_;  // by the loop over k
};

}  // namespace tessera::check
