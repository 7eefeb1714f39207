// The ops of a body as ones that may be changed.
#pragma once

#include <vector>

#include "core/kernel.h"

namespace tessera::core::testing {

/// All of them, those of inner bodies too, in their order (core/walk.h has the walk that only
/// looks).
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
inline void append_ops(Body& body, std::vector<Op*>& out) {
  for (Op& op : body) {
    out.push_back(&op);
    if (auto* loop = std::get_if<For>(&op.node)) append_ops(loop->body, out);
    if (auto* branch = std::get_if<If>(&op.node)) {
      append_ops(branch->body, out);
      append_ops(branch->otherwise, out);
    }
    if (auto* elected = std::get_if<Elected>(&op.node)) append_ops(elected->body, out);
    if (auto* role = std::get_if<Role>(&op.node)) append_ops(role->body, out);
  }
}
inline std::vector<Op*> ops_of(Body& body) {
  std::vector<Op*> out;
  append_ops(body, out);
  return out;
}

}  // namespace tessera::core::testing
