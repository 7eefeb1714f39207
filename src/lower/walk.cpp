#include "lower/walk.h"

namespace tessera::lower {

bool is_of_warp(const arch::Form& form) {
  const arch::Issuer i = form.effects.issuer;
  return i == arch::Issuer::warp || i == arch::Issuer::warpgroup;
}

bool depends_on_lane(const core::Kernel& kernel, term::Term t) {
  return term::any_node(t, [&](term::Term n) { return n == kernel.at.lane; });
}

bool apart_after(const core::Kernel& kernel, const core::Body& body, bool before) {
  bool apart = before;
  for (const core::Op& op : body) {
    if (const auto* const i = op.as<core::Issue>()) {
      if (is_of_warp(*i->form)) apart = false;
    } else if (op.as<core::Elected>() != nullptr) {
      apart = true;
    } else if (const auto* const b = op.as<core::If>()) {
      apart = depends_on_lane(kernel, b->condition) || apart_after(kernel, b->body, apart) ||
              apart_after(kernel, b->otherwise, apart);
    } else if (const auto* const l = op.as<core::For>()) {
      apart = apart_after(kernel, l->body, apart) || apart;
    } else if (const auto* const r = op.as<core::Role>()) {
      apart = apart_after(kernel, r->body, apart) || apart;
    }
  }
  return apart;
}

}  // namespace tessera::lower
