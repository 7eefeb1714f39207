#include "core/walk.h"

#include <algorithm>

namespace tessera::core {

bool waits_for_grids(const arch::Form& form) {
  const std::vector<arch::Event>& events = form.effects.events;
  return std::any_of(events.begin(), events.end(),
                     [](const arch::Event& e) { return e.kind == arch::EventKind::prerequisites; });
}

bool waits_for_grids(const Kernel& kernel) {
  bool waits = false;
  for_each_op(kernel.body, [&](const Op& op) {
    if (const auto* const i = op.as<Issue>()) waits = waits || waits_for_grids(*i->form);
  });
  return waits;
}

}  // namespace tessera::core
