// What is asserted of tags, for all values of an assertion's symbols, warp by warp and lane by
// lane.
#include <algorithm>
#include <functional>

#include "check/launch.h"
#include "check/tag_walk.h"
#include "term/rules.h"

namespace tessera::check {
namespace {

/// f() for all values of the symbols, until it is false.
bool each(const std::vector<Term>& symbols, const std::function<int64_t&(Term)>& number,
          const std::function<bool()>& f) {
  for (const Term s : symbols) number(s) = 0;
  for (;;) {
    if (!f()) return false;
    std::size_t i = 0;
    for (; i < symbols.size() && ++number(symbols[i]) == symbols[i]->symbol->bounds.upper->value;
         ++i)
      number(symbols[i]) = 0;
    if (i == symbols.size()) return true;
  }
}

bool has(Term t, Term symbol) {
  return term::any_node(t, [&](Term n) { return n == symbol; });
}
bool uses(const core::Tagged& at, Term symbol) {
  if (const auto* s = std::get_if<core::SharedAt>(&at))
    return std::any_of(s->at.begin(), s->at.end(), [&](Term t) { return has(t, symbol); });
  const auto* r = std::get_if<core::Slice>(&at);
  return r != nullptr && has(r->first, symbol);
}
bool uses(const core::AssertTag& a, Term symbol) {
  const auto* other = std::get_if<core::Tagged>(&a.to);
  return uses(a.at, symbol) ||
         (other != nullptr ? uses(*other, symbol) : has(std::get<Term>(a.to), symbol));
}
bool of_registers(const core::AssertTag& a) {
  const auto* other = std::get_if<core::Tagged>(&a.to);
  return std::holds_alternative<core::Slice>(a.at) ||
         (other != nullptr && std::holds_alternative<core::Slice>(*other));
}

/// Whether the op, or one in it, waits for something: others may have gone on then.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool waits(const core::Op& op) {
  const auto any = [](const core::Body& b) { return std::any_of(b.begin(), b.end(), waits); };
  if (const auto* i = op.as<core::Issue>()) {
    const auto& events = i->form->effects.events;
    return std::any_of(events.begin(), events.end(), [](const arch::Event& e) {
      return e.verb == arch::Verb::awaits && e.kind != arch::EventKind::wgmma_group;
    });
  }
  if (const auto* l = op.as<core::For>()) return !l->unroll || any(l->body);
  if (const auto* e = op.as<core::Elected>()) return any(e->body);
  if (const auto* i = op.as<core::If>()) return any(i->body) || any(i->otherwise);
  return false;
}

/// The first op, or in it, that reads the slot of the shared memory.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
const core::Op* reader(const core::Op& op, const core::SharedAt& at,
                       const std::function<bool(const core::SharedAt&)>& same) {
  const auto in = [&](const core::Body& b) -> const core::Op* {
    for (const core::Op& o : b)
      if (const core::Op* r = reader(o, at, same)) return r;
    return nullptr;
  };
  if (const auto* i = op.as<core::Issue>()) {
    for (std::size_t n = 0; n < i->arguments.size() && n < i->form->operands.size(); ++n) {
      const auto* s = std::get_if<core::SharedAt>(&i->arguments[n]);
      if (s == nullptr || s->shared != at.shared || !same(*s)) continue;
      for (const arch::Access& a : i->form->effects.accesses)
        if (a.operand == i->form->operands[n].name && a.action == arch::Action::read) return &op;
    }
    return nullptr;
  }
  if (const auto* l = op.as<core::For>()) return l->unroll ? in(l->body) : nullptr;
  if (const auto* e = op.as<core::Elected>()) return in(e->body);
  if (const auto* i = op.as<core::If>()) return i->otherwise.empty() ? in(i->body) : nullptr;
  return nullptr;
}

}  // namespace

void TagWalk::undecided(const core::Op& op, std::string why) {
  Decided& d = tagging_.decided[&op];
  d.reached = true;
  if (d.why.empty()) d.why = std::move(why);
}

/// Where the elements of shared memory come from that are asserted something of: what an
/// instruction beside the assertion sees, with no wait between the two.
const Origins* TagWalk::seen_by(const core::Op& op, const core::SharedAt& at) {
  const core::Body& b = *bodies_.back();
  const auto here = std::find_if(b.begin(), b.end(), [&](const core::Op& o) { return &o == &op; });
  const auto& over = op.as<core::AssertTag>()->over;
  const auto same = [&](const core::SharedAt& s) {
    for (std::size_t i = 0; i < at.at.size() && i < s.at.size(); ++i) {
      const bool own =
          std::any_of(over.begin(), over.end(), [&](Term o) { return has(at.at[i], o); });
      if (!own && !value(at.at[i]) && term::simplify(at.at[i]) != term::simplify(s.at[i]))
        return false;
    }
    return true;
  };
  for (auto i = here; i != b.end(); ++i) {
    if (const core::Op* r = reader(*i, at, same)) return &origins_of(*r, at.shared);
    if (waits(*i)) break;
  }
  for (auto i = here; i != b.begin();) {
    if (waits(*--i)) break;
    if (const core::Op* r = reader(*i, at, same)) return &origins_of(*r, at.shared);
  }
  return nullptr;
}

void TagWalk::say(const core::Tag& t, const std::vector<int>& warps) {
  if (std::get_if<core::GlobalAt>(&t.at) != nullptr) return;  // known from the beginning
  const auto* r = std::get_if<core::Slice>(&t.at);
  if (r == nullptr) {
    tagging_.retagged.insert(std::get<core::SharedAt>(t.at).shared.index);
    return;
  }
  const auto found = std::find(tagging_.names.begin(), tagging_.names.end(), t.name);
  const int name = static_cast<int>(found - tagging_.names.begin());
  for (const int w : warps)
    for (int lane = 0; lane < 32; ++lane) {
      number(warp_) = w;
      number(kernel_.at.lane) = lane;
      each(
          t.over, [&](Term s) -> int64_t& { return number(s); },
          [&] {
            Id& to = slot(w, r->registers, value(r->first).value_or(-1), lane);
            to = tagging_.carried.with(to, name, t.value ? scalar(t.value) : Carried::none);
            return true;
          });
    }
  number(kernel_.at.lane) = 0;
}

bool TagWalk::sides(const core::Op& op, Sides& out) {
  const auto& a = *op.as<core::AssertTag>();
  const auto* other = std::get_if<core::Tagged>(&a.to);
  const auto found = std::find(tagging_.names.begin(), tagging_.names.end(), a.name);
  out.name = static_cast<int>(found - tagging_.names.begin());
  for (const Term s : a.over) {
    const bool here = uses(a.at, s);
    const bool there = other != nullptr ? uses(*other, s) : has(std::get<Term>(a.to), s);
    if (here || there) (here && there ? out.both : here ? out.here : out.there).push_back(s);
  }
  const auto from = [&](const core::Tagged& at, const Origins*& o) {
    const auto* s = std::get_if<core::SharedAt>(&at);
    if (s == nullptr) return true;
    o = seen_by(op, *s);
    if (o == nullptr)
      undecided(op, fmt::format("no instruction beside it reads `{}` there, with no wait between",
                                kernel_[s->shared].name));
    else if (!o->why.empty())
      undecided(op, o->why);
    return o != nullptr && o->why.empty();
  };
  return from(a.at, out.here_from) && (other == nullptr || from(*other, out.there_from));
}

void TagWalk::asserted(const core::Op& op, const std::vector<int>& warps) {
  const auto& a = *op.as<core::AssertTag>();
  Decided& d = tagging_.decided[&op];
  d.reached = true;
  if (d.refuted) return;
  Sides s;
  if (!sides(op, s)) return;
  const bool by_lane = of_registers(a) || uses(a, kernel_.at.lane);
  const bool by_warp = of_registers(a) || uses(a, warp_);
  // In another turn, what copies have brought is the same, by its counter.
  if (!of_registers(a) && s.here_from != nullptr && s.here_from->stores.empty() &&
      (s.there_from == nullptr || s.there_from->stores.empty()) &&
      !seen_alike_.emplace(&op, s.here_from, s.there_from).second)
    return;
  for (const int w : warps) {
    number(warp_) = w;
    for (int lane = 0; lane < (by_lane ? 32 : 1) && !d.refuted; ++lane) {
      number(kernel_.at.lane) = lane;
      check(op, s, w, lane);
    }
    number(kernel_.at.lane) = 0;
    if (!by_warp || d.refuted) return;
  }
}

TagWalk::Side TagWalk::side_at(const core::AssertTag& a, const core::Tagged& at,
                               const Origins* from, int name, int warp, int lane) {
  Side out;
  for (std::size_t i = 0; i < a.over.size() && i < out.numbers.size(); ++i)
    out.numbers[i] = number(a.over[i]);
  Id id = tagging_.carried.all_unknown();
  if (const auto* r = std::get_if<core::Slice>(&at)) {
    if (const auto i = value(r->first)) id = slot(warp, r->registers, *i, lane);
  } else if (const auto* s = std::get_if<core::SharedAt>(&at)) {
    if (const auto byte = byte_at(*from, *s)) id = of_byte(*from, s->shared, *byte);
  }
  out.value = tagging_.carried.under(id, name);
  return out;
}

void TagWalk::check(const core::Op& op, const Sides& s, int warp, int lane) {
  const auto& a = *op.as<core::AssertTag>();
  const auto* other = std::get_if<core::Tagged>(&a.to);
  const auto number_of = [&](Term t) -> int64_t& { return number(t); };
  // What a side is depends on where it lies alone: the same place is looked at once.
  const bool once = other != nullptr && std::holds_alternative<core::SharedAt>(*other) &&
                    std::holds_alternative<core::Slice>(a.at);
  std::map<std::vector<int64_t>, std::vector<Side>> known;
  each(s.both, number_of, [&] {
    std::vector<Side> here, there;
    each(s.here, number_of, [&] {
      here.push_back(side_at(a, a.at, s.here_from, s.name, warp, lane));
      return true;
    });
    for (const Term t : s.here) number(t) = 0;
    std::vector<int64_t> key;
    for (const Term t : s.there) number(t) = 0;
    if (once)
      for (const Term t : std::get<core::SharedAt>(*other).at) key.push_back(value(t).value_or(-1));
    if (const auto found = known.find(key); once && found != known.end()) {
      there = found->second;
    } else {
      each(s.there, number_of, [&] {
        if (other != nullptr) {
          there.push_back(side_at(a, *other, s.there_from, s.name, warp, lane));
        } else {
          there.push_back({scalar(std::get<Term>(a.to)), {}});
        }
        return true;
      });
      if (once) known[key] = there;
    }
    return agree(op, s, warp, lane, here, there);
  });
}

/// True where they do; else it has been said why not, or that it is not known.
bool TagWalk::agree(const core::Op& op, const Sides& s, int warp, int lane,
                    const std::vector<Side>& here, const std::vector<Side>& there) {
  const bool apart = op.as<core::AssertTag>()->apart;
  for (const std::vector<Side>* side : {&here, &there})
    for (const Side& x : *side) {
      if (x.value == Carried::unknown) {
        undecided(op, fmt::format("what {} carries is not followed",
                                  side == &here ? "an element" : "what it is compared with"));
        return false;
      }
      if (x.value >= Carried::values) continue;
      refute(op, s, warp, lane, x, side == &here ? &there[0] : nullptr, "");
      return false;
    }
  const auto related = [&](const Side& x, const Side& y) {
    const Carried::Relation r = tagging_.carried.compare(x.value, y.value);
    if (r == (apart ? Carried::Relation::different : Carried::Relation::equal)) return true;
    std::string where;
    if (r == Carried::Relation::undecided) {
      const Term equal =
          term::equals(tagging_.carried.term(x.value), tagging_.carried.term(y.value));
      const auto found = fails(kernel_, place(op).loops, apart ? term::logical_not(equal) : equal,
                               {{warp_.node(), warp}, {kernel_.at.lane.node(), lane}});
      if (!found) {
        undecided(
            op, fmt::format("it is not known whether `{}` is `{}`", text(x.value), text(y.value)));
        return false;
      }
      where = *found;
    }
    refute(op, s, warp, lane, x, &y, where);
    return false;
  };
  std::set<Scalar> seen;
  if (!apart) {
    for (const Side& y : there)
      if (seen.insert(y.value).second && !related(here[0], y)) return false;
    for (const Side& x : here)
      if (seen.insert(x.value).second && !related(x, there[0])) return false;
    return true;
  }
  std::set<std::pair<Scalar, Scalar>> pairs;
  for (const Side& x : here)
    for (const Side& y : there)
      if (pairs.emplace(x.value, y.value).second && !related(x, y)) return false;
  return true;
}

}  // namespace tessera::check
