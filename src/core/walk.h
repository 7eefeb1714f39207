// Walks over the ops of a body.
#pragma once

#include "core/kernel.h"

namespace tessera::core {

/// Calls `visit(op)` for every op of the body, those of inner bodies too, in their order.
template <class Visit>
void for_each_op(const Body& body, Visit&& visit) {
  for (const Op& op : body) {
    visit(op);
    if (const auto* const l = op.as<For>()) {
      for_each_op(l->body, visit);
    } else if (const auto* const b = op.as<If>()) {
      for_each_op(b->body, visit);
      for_each_op(b->otherwise, visit);
    } else if (const auto* const e = op.as<Elected>()) {
      for_each_op(e->body, visit);
    } else if (const auto* const r = op.as<Role>()) {
      for_each_op(r->body, visit);
    }
  }
}

/// Whether the op is what an author says or asserts of tags: nothing that the machine executes.
bool is_tags(const Op& op);
/// Whether the kernel has such ops.
bool has_tags(const Kernel& kernel);
/// The kernel without them, and without the branches that have nothing else.
Kernel without_tags(const Kernel& kernel);

/// Whether some op waits for the grids before this one (`grid.wait`): then the kernel is launched
/// so that it may start before they have ended.
bool waits_for_grids(const Kernel& kernel);

/// Whether the instruction is such a wait.
bool waits_for_grids(const arch::Form& form);

}  // namespace tessera::core
