// Walks over the ops of a body.
#pragma once

#include "core/kernel.h"

namespace tessera::lower {

/// Calls `visit(op)` for every op of the body, those of inner bodies too, in their order.
template <class Visit>
void for_each_op(const core::Body& body, Visit&& visit) {
  for (const core::Op& op : body) {
    visit(op);
    if (const auto* const l = op.as<core::For>()) {
      for_each_op(l->body, visit);
    } else if (const auto* const b = op.as<core::If>()) {
      for_each_op(b->body, visit);
      for_each_op(b->otherwise, visit);
    } else if (const auto* const e = op.as<core::Elected>()) {
      for_each_op(e->body, visit);
    } else if (const auto* const r = op.as<core::Role>()) {
      for_each_op(r->body, visit);
    }
  }
}

/// True where a whole warp executes the instruction together.
bool is_of_warp(const arch::Form& form);

/// Whether the lanes of a warp may be at different places after the body, if they may before it.
bool apart_after(const core::Kernel& kernel, const core::Body& body, bool before);

/// Whether some op waits for the grids before this one: then it may start before they have ended.
bool waits_for_grids(const core::Kernel& kernel);

/// Whether the lanes of a warp may differ about the predicate.
bool depends_on_lane(const core::Kernel& kernel, term::Term t);

}  // namespace tessera::lower
