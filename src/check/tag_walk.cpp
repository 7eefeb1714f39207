#include "check/tag_walk.h"

#include <algorithm>

#include "core/walk.h"
#include "term/query.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

constexpr term::Effort little = {.operations = 1 << 16};
constexpr int most_walks = 3;  // of later turns, until they leave the same

bool proved(Term predicate) {
  return term::always(predicate, little).proved();
}

bool has(Term t, Term symbol) {
  return term::any_node(t, [&](Term n) { return n == symbol; });
}

}  // namespace

TagWalk::TagWalk(Tagging& shared, const core::Role* role)
    : tagging_(shared),
      kernel_(shared.kernel),
      role_(role),
      warps_(role != nullptr ? role->warps : shared.kernel.threads / 32),
      warp_(role != nullptr ? role->warp : shared.kernel.at.warp) {
  for (const Place& p : shared.places) places_.emplace(p.op, &p);
  state_.registers.resize(kernel_.registers.size());
  for (const term::Node* n : shared.numbered)
    numbers_.resize(std::max(numbers_.size(), static_cast<std::size_t>(n->symbol->index) + 1), 0);
}

void TagWalk::run() {
  std::vector<int> warps;
  for (int w = 0; w < warps_; ++w) warps.push_back(w);
  body(role_ != nullptr ? role_->body : kernel_.body, warps);
}

int64_t& TagWalk::number(Term symbol) {
  const auto i = static_cast<std::size_t>(symbol->symbol->index);
  if (i >= numbers_.size()) numbers_.resize(i + 1, 0);
  return numbers_[i];
}

Split& TagWalk::split_of(Term t) {
  auto found = splits_.find(t.node());
  if (found == splits_.end()) found = splits_.emplace(t.node(), Split(t, tagging_.numbered)).first;
  return found->second;
}

/// Of a term of symbols that have numbers.
std::optional<int64_t> TagWalk::value(Term t) {
  if (t->op == term::Op::constant) return t->value;
  const Scalar s = scalar(t);
  if (s < Carried::values) return std::nullopt;
  const Term as = tagging_.carried.term(s);
  return as->op == term::Op::constant ? std::optional(as->value) : std::nullopt;
}

std::vector<TagWalk::Id>& TagWalk::all_of(core::RegistersId r) {
  std::vector<Id>& all = state_.registers[static_cast<std::size_t>(r.index)];
  if (all.empty()) all.assign(static_cast<std::size_t>(warps_ * kernel_[r].slots() * 32), 0);
  return all;
}

TagWalk::Id& TagWalk::slot(int warp, core::RegistersId r, int64_t slot, int lane) {
  static Id outside;
  std::vector<Id>& all = all_of(r);
  const int64_t slots = std::ssize(all) / (int64_t{32} * warps_);  // slots() walks a layout
  if (slot < 0 || slot >= slots) return outside = 0;
  return all[static_cast<std::size_t>((warp * slots + slot) * 32 + lane)];
}

std::vector<const core::For*> TagWalk::later() const {
  std::vector<const core::For*> out;
  for (const Turn& t : turns_)
    if (!t.first) out.push_back(t.loop);
  return out;
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TagWalk::body(const core::Body& b, const std::vector<int>& warps) {
  bodies_.push_back(&b);
  for (const core::Op& op : b) {
    if (const auto* l = op.as<core::For>()) {
      if (!l->unroll) {
        loop(*l, warps);
        continue;
      }
      for (int64_t n = l->lower->value; n < l->upper->value; n += l->step->value) {
        number(l->counter) = n;
        body(l->body, warps);
      }
    } else if (const auto* i = op.as<core::If>()) {
      branch(*i, warps);
    } else if (const auto* e = op.as<core::Elected>()) {
      const bool outside = std::exchange(one_lane_, true);
      body(e->body, warps);
      one_lane_ = outside;
    } else if (const auto* d = op.as<core::Declare>()) {
      declare(*d, warps);
    } else if (op.as<core::Compute>() != nullptr) {
      compute(op, warps);
    } else if (op.as<core::Issue>() != nullptr) {
      issue(op, warps);
    } else if (const auto* t = op.as<core::Tag>()) {
      say(*t, warps);
    } else if (op.as<core::AssertTag>() != nullptr) {
      asserted(op, warps);
    }
  }
  bodies_.pop_back();
}

/// The state with `by` in the place of the loop's counter; sums over its turns are not known.
TagWalk::State TagWalk::with(const State& s, const core::For& l, Term by) {
  Carried& carried = tagging_.carried;
  std::unordered_map<const term::Node*, Scalar> of_bases;
  const auto exchanged_base = [&](Term t) {
    for (const core::Carried& c : l.carried)
      if (has(t, c.symbol)) return Carried::unknown;
    if (!has(t, l.counter)) return carried.scalar(t, 0);
    return by ? carried.scalar(with_term(t, l.counter, by)) : Carried::unknown;
  };
  const auto exchanged_value = [&](Scalar v) {
    const Term base = carried.base(v);
    if (!base) return v;
    const auto [place, is_new] = of_bases.try_emplace(base.node(), Carried::unknown);
    if (is_new) place->second = exchanged_base(base);
    return place->second == Carried::unknown ? Carried::unknown : carried.shifted(place->second, v);
  };
  std::vector<Id> memo(carried.size(), -1);
  const auto exchanged = [&](Id id) {
    if (static_cast<std::size_t>(id) >= memo.size()) memo.resize(carried.size(), -1);
    Id& to = memo[static_cast<std::size_t>(id)];
    if (to < 0) to = carried.mapped(id, exchanged_value);
    return to;
  };
  State out = s;
  for (std::vector<Id>& all : out.registers)
    for (Id& id : all) id = exchanged(id);
  out.stored.clear();  // another turn's is not looked at
  return out;
}

TagWalk::State TagWalk::either(const State& a, const State& b) {
  State out = a;
  for (std::size_t r = 0; r < out.registers.size(); ++r) {
    const std::size_t size = std::max(a.registers[r].size(), b.registers[r].size());
    out.registers[r].resize(size, 0);
    for (std::size_t i = 0; i < size; ++i) {
      Id& to = out.registers[r][i];
      const Id other = i < b.registers[r].size() ? b.registers[r][i] : 0;
      if (to != other) to = tagging_.carried.either(to, other);
    }
  }
  std::erase_if(out.stored, [&](const auto& s) {
    const auto other = b.stored.find(s.first);
    return other == b.stored.end() || other->second != s.second;
  });
  return out;
}

/// Nothing is known of the registers that the body writes.
void TagWalk::forget(const core::Body& body, State& s) {
  const auto lose = [&](core::RegistersId r) {
    for (Id& id : s.registers[static_cast<std::size_t>(r.index)])
      id = tagging_.carried.all_unknown();
  };
  core::for_each_op(body, [&](const core::Op& op) {
    if (const auto* c = op.as<core::Compute>()) {
      for (const core::Run& r : c->results) lose(r.registers);
    } else if (const auto* i = op.as<core::Issue>()) {
      for (std::size_t n = 0; n < i->arguments.size(); ++n)
        if (const auto* slice = std::get_if<core::Slice>(&i->arguments[n]);
            slice != nullptr && i->form->operands[n].direction != arch::Direction::in)
          lose(slice->registers);
    } else if (const auto* t = op.as<core::Tag>()) {
      if (const auto* slice = std::get_if<core::Slice>(&t->at)) lose(slice->registers);
    }
  });
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TagWalk::loop(const core::For& l, const std::vector<int>& warps) {
  const bool by_one = l.step->op == term::Op::constant && l.step->value == 1;
  const bool turns = proved(term::less(l.lower, l.upper));
  const State before = state_;
  turns_.push_back({&l, true});
  body(l.body, warps);
  turns_.pop_back();
  State left = state_;
  for (int walk = 0; walk < most_walks; ++walk) {
    state_ = with(left, l, by_one ? l.counter - 1 : Term());
    turns_.push_back({&l, false});
    body(l.body, warps);
    turns_.pop_back();
    if (state_.registers == left.registers) break;
    left = either(left, state_);
    if (walk < most_walks - 1) continue;
    // It goes on changing from turn to turn: what a turn writes is not known.
    forget(l.body, left);
    state_ = with(left, l, by_one ? l.counter - 1 : Term());
    turns_.push_back({&l, false});
    body(l.body, warps);
    turns_.pop_back();
    left = either(left, state_);
  }
  state_ = with(left, l, by_one ? l.upper - 1 : Term());
  if (!turns) state_ = either(before, state_);
}

/// What a condition is in this turn; nothing where it is open.
std::optional<bool> TagWalk::decide(Term condition, int warp) {
  const Term lane = kernel_.at.lane;
  if (has(condition, lane)) return std::nullopt;
  Known known = {{warp_.node(), warp}};
  term::any_node(condition, [&](Term n) {
    if (n->symbol != nullptr && n->leaf() && n != warp_ && tagging_.numbered.contains(n.node()))
      known[n.node()] = number(n);
    return false;
  });
  Term t = with_values(condition, known);
  Term assumed = t.pool().truth(true);
  for (const Turn& turn : turns_) {
    if (!has(t, turn.loop->counter) &&
        std::none_of(turn.loop->carried.begin(), turn.loop->carried.end(),
                     [&](const core::Carried& c) { return has(t, c.symbol); }))
      continue;
    if (turn.first) {
      t = with_term(t, turn.loop->counter, turn.loop->lower);
      for (const core::Carried& c : turn.loop->carried)
        t = with_term(t, c.symbol, t.pool().constant(0));
    } else {
      assumed = term::logical_and(
          assumed, term::less_equal(turn.loop->lower + turn.loop->step, turn.loop->counter));
    }
  }
  t = term::simplify(t);
  if (t->op == term::Op::truth) return t->value != 0;
  const std::string key = std::to_string(t->id) + " " + std::to_string(assumed->id);
  if (const auto seen = decisions_.find(key); seen != decisions_.end()) return seen->second;
  std::optional<bool>& out = decisions_[key];
  if (proved(term::logical_or(term::logical_not(assumed), t)))
    out = true;
  else if (proved(term::logical_or(term::logical_not(assumed), term::logical_not(t))))
    out = false;
  return out;
}

/// Nothing is known of what the ops may write.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TagWalk::lose(const core::Body& b) {
  const Id lost = tagging_.carried.all_unknown();
  const auto clear = [&](core::RegistersId r) {
    std::vector<Id>& all = all_of(r);
    std::fill(all.begin(), all.end(), lost);
  };
  for (const core::Op& op : b) {
    if (const auto* c = op.as<core::Compute>())
      for (const core::Run& r : c->results) clear(r.registers);
    if (const auto* i = op.as<core::Issue>())
      for (std::size_t n = 0; n < i->arguments.size(); ++n)
        if (const auto* s = std::get_if<core::Slice>(&i->arguments[n]);
            s != nullptr && i->form->operands[n].direction != arch::Direction::in)
          clear(s->registers);
    if (op.as<core::AssertTag>() != nullptr)
      undecided(op, "it stands under a condition on the lane");
    if (const auto* l = op.as<core::For>()) lose(l->body);
    if (const auto* e = op.as<core::Elected>()) lose(e->body);
    if (const auto* i = op.as<core::If>()) {
      lose(i->body);
      lose(i->otherwise);
    }
  }
}

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
void TagWalk::branch(const core::If& i, const std::vector<int>& warps) {
  if (has(i.condition, kernel_.at.lane)) {
    lose(i.body);
    lose(i.otherwise);
    return;
  }
  std::vector<int> yes, no, open;
  for (const int w : warps) {
    const std::optional<bool> holds = decide(i.condition, w);
    (holds ? (*holds ? yes : no) : open).push_back(w);
  }
  if (!yes.empty()) body(i.body, yes);
  if (!no.empty()) body(i.otherwise, no);
  if (open.empty()) return;
  const State before = state_;
  body(i.body, open);
  State taken = std::exchange(state_, before);
  body(i.otherwise, open);
  state_ = either(taken, state_);
}

}  // namespace tessera::check
