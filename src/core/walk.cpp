#include "core/walk.h"

#include <algorithm>

namespace tessera::core {
namespace {

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
Body plain(const Body& body) {
  Body out;
  for (const Op& op : body) {
    if (is_tags(op)) continue;
    Op one = op;
    bool was = true, is = true;  // whether there is anything in its bodies
    const auto inner = [&](Body& b) { b = plain(b); };
    if (auto* l = std::get_if<For>(&one.node)) {
      was = !l->body.empty();
      inner(l->body);
      is = !l->body.empty() || !l->carried.empty();
    } else if (auto* b = std::get_if<If>(&one.node)) {
      was = !b->body.empty() || !b->otherwise.empty();
      inner(b->body);
      inner(b->otherwise);
      is = !b->body.empty() || !b->otherwise.empty();
    } else if (auto* e = std::get_if<Elected>(&one.node)) {
      was = !e->body.empty();
      inner(e->body);
      is = !e->body.empty();
    } else if (auto* r = std::get_if<Role>(&one.node)) {
      inner(r->body);
    }
    if (is || !was) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

bool is_tags(const Op& op) {
  return op.as<Tag>() != nullptr || op.as<AssertTag>() != nullptr;
}

bool has_tags(const Kernel& kernel) {
  bool has = false;
  for_each_op(kernel.body, [&](const Op& op) { has = has || is_tags(op); });
  return has;
}

Kernel without_tags(const Kernel& kernel) {
  Kernel out = kernel;
  out.body = plain(kernel.body);
  return out;
}

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
