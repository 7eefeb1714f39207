#include "lower/uses.h"

#include <algorithm>

namespace tessera::lower {

using core::Op;

namespace {

/// The last op up to `end` that waits for others than lanes of its warp; 0: none does. For the
/// grids before, a kernel that was launched behind none does not wait.
int last_wait(const core::Body& body, int end) {
  for (int i = end; i > 0; --i)
    if (const auto* const issue = body[static_cast<std::size_t>(i)].as<core::Issue>())
      for (const arch::Event& e : issue->form->effects.events)
        if (e.verb == arch::Verb::awaits && e.kind != arch::EventKind::prerequisites &&
            e.kind != arch::EventKind::warp)
          return i;
  return 0;
}

}  // namespace

Uses::Uses(const core::Kernel& kernel, std::function<std::vector<Wanted>(const Op&)> wanted,
           std::function<std::vector<Wanted>(const core::Compute&)> of_element,
           std::function<bool(const core::For&, Term)> counted, std::function<bool(Term)> costly)
    : of_op_(std::move(wanted)),
      of_element_(std::move(of_element)),
      counted_(std::move(counted)),
      costly_(std::move(costly)) {
  const int whole = enter(&kernel.body, -1, 0, {}, false);
  levels_[static_cast<std::size_t>(whole)].role = true;
  levels_[static_cast<std::size_t>(whole)].body = &kernel.body;
  walk(kernel.body, whole);
  settle();
}

int Uses::enter(Scope scope, int parent, int index, const std::vector<Term>& binds, bool loop) {
  const int depth = parent < 0 ? 0 : levels_[static_cast<std::size_t>(parent)].depth + 1;
  levels_.push_back({parent, index, depth, {}, loop});
  for (const Term t : binds)
    if (t) levels_.back().binds.push_back(t->symbol);
  return numbers_[scope] = static_cast<int>(levels_.size()) - 1;
}

void Uses::walk(const core::Body& body, int level) {
  for (int i = 0; i < static_cast<int>(body.size()); ++i) {
    const Op& op = body[static_cast<std::size_t>(i)];
    for (const Wanted& w : of_op_(op)) use(w, level, i);
    if (const auto* const l = op.as<core::For>()) {
      std::vector<Term> binds = {l->counter};
      for (const core::Carried& c : l->carried) binds.push_back(c.symbol);
      const int inside = enter(&l->body, level, i, binds, true);
      levels_[static_cast<std::size_t>(inside)].of = l;
      levels_[static_cast<std::size_t>(inside)].body = &l->body;
      walk(l->body, inside);
    } else if (const auto* const b = op.as<core::If>()) {
      for (const core::Body* branch : {&b->body, &b->otherwise}) {
        const int inside = enter(branch, level, i, {}, false);
        levels_[static_cast<std::size_t>(inside)].condition = b->condition;
        levels_[static_cast<std::size_t>(inside)].body = branch;
        walk(*branch, inside);
      }
    } else if (const auto* const e = op.as<core::Elected>()) {
      walk(e->body, enter(&e->body, level, i, {}, false));
    } else if (const auto* const r = op.as<core::Role>()) {
      const int inside = enter(&r->body, level, i, {r->warp}, false);
      levels_[static_cast<std::size_t>(inside)].role = true;
      levels_[static_cast<std::size_t>(inside)].body = &r->body;
      walk(r->body, inside);
    } else if (const auto* const c = op.as<core::Compute>()) {
      const int inside = enter(c, level, i, {c->element}, true);
      for (const Wanted& w : of_element_(*c)) use(w, inside, 0);
    }
  }
}

/// To the parent.
void Uses::lift(int& level, int& index) const {
  const Level& l = levels_[static_cast<std::size_t>(level)];
  index = l.index;
  level = l.parent;
}

/// The innermost body that has both, and the first op there.
void Uses::meet(Use& u, int level, int index) const {
  if (u.level < 0) {
    u.level = level;
    u.index = index;
    return;
  }
  const auto depth = [&](int l) { return levels_[static_cast<std::size_t>(l)].depth; };
  while (depth(u.level) > depth(level)) lift(u.level, u.index);
  while (depth(level) > depth(u.level)) lift(level, index);
  while (level != u.level) {
    lift(level, index);
    lift(u.level, u.index);
  }
  u.index = std::min(u.index, index);
}

bool Uses::has_bound(Term t, const Level& l) {
  return std::any_of(l.binds.begin(), l.binds.end(),
                     [&](const term::Symbol* s) { return has(t, s); });
}

int Uses::binder(Term t, int level) {
  while (level >= 0) {
    const Level& l = levels_[static_cast<std::size_t>(level)];
    if (has_bound(t, l)) return level;
    level = l.parent;
  }
  return level;
}

bool Uses::is_counted(Term t, int level) const {
  for (; level >= 0; level = levels_[static_cast<std::size_t>(level)].parent) {
    const core::For* const l = levels_[static_cast<std::size_t>(level)].of;
    if (l != nullptr && counted_(*l, t)) return true;
  }
  return false;
}

Uses::Use& Uses::add_use(Term t, int level, int index) {
  auto& [term, u] = uses_[{t->id, binder(t, level)}];
  term = t;
  ++u.count;
  meet(u, level, index);
  return u;
}

void Uses::use(const Wanted& w, int level, int index) {
  if (!w.term) return;
  Use& u = add_use(w.term, level, index);
  if (u.hint.empty()) u.hint = w.hint;
}

bool Uses::has(Term t, const term::Symbol* s) {
  if (t->symbol == s) return true;
  const auto key = std::pair(t.node(), s);
  if (const auto found = has_.find(key); found != has_.end()) return found->second;
  const bool any = std::any_of(t->args.begin(), t->args.end(), [&](Term a) { return has(a, s); });
  return has_[key] = any;
}

/// To where a costly term is computed.
void Uses::lift_early(Term t, int& level, int& index) {
  const int bound = binder(t, level);
  while (level != bound) {
    const Level& l = levels_[static_cast<std::size_t>(level)];
    if (l.role || (l.condition && bound >= 0 &&
                   has_bound(l.condition, levels_[static_cast<std::size_t>(bound)])))
      break;
    lift(level, index);
  }
  const core::Body* const body = levels_[static_cast<std::size_t>(level)].body;
  index = body == nullptr ? 0 : last_wait(*body, index);
}

/// Users before what they use: then a term's place is known before its arguments are looked at.
void Uses::settle() {
  for (const auto& [order, used] : uses_) {
    const Term t = used.first;
    Use u = used.second;
    if (t->symbol != nullptr) symbols_.insert(t->symbol);
    if (is_counted(t, u.level)) continue;
    if (costly_(t)) {
      lift_early(t, u.level, u.index);
      placed_[{u.level, u.index}].push_back({t, u.hint});
    } else if (u.count > 1 && !t->leaf()) {
      for (;;) {
        const Level& l = levels_[static_cast<std::size_t>(u.level)];
        if (!l.loop || has_bound(t, l)) break;
        lift(u.level, u.index);
      }
      placed_[{u.level, u.index}].push_back({t, u.hint});
    }
    for (const Term a : t->args) add_use(a, u.level, u.index);
  }
  for (auto& [place, all] : placed_)
    std::sort(all.begin(), all.end(),
              [](const Wanted& a, const Wanted& b) { return a.term->id < b.term->id; });
}

std::vector<Wanted> Uses::before(Scope scope, int at) const {
  const auto number = numbers_.find(scope);
  if (number == numbers_.end()) return {};
  const auto found = placed_.find({number->second, at});
  return found == placed_.end() ? std::vector<Wanted>{} : found->second;
}

}  // namespace tessera::lower
