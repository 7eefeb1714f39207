// What of the clocks has influence on what follows.
//
// A clock is asked only whether it has an event that is recorded somewhere: the end of an access, a
// wait, an arrival, a phase. Two values of a component between which no recorded event lies are
// one, then and ever after: events to come are later than both.
#include <algorithm>

#include "check/machine.h"

namespace tessera::check {

/// The index of the latest event of every component.
Clock Machine::latest() const {
  Clock out(static_cast<std::size_t>(components()), 0);
  for (int k = 0; k < warps(); ++k) {
    const Warp& w = state.warps[static_cast<std::size_t>(k)];
    const auto at = [&](Part p) -> int32_t& { return out[static_cast<std::size_t>(part(k, p))]; };
    at(elected) = at(seen_elected) = at(fenced_elected) = w.elected_index;
    at(others) = at(seen_others) = at(fenced_others) = w.others_index;
    at(wgmma) = w.wgmma_groups;
    at(bulk_read) = w.bulk_groups;
  }
  for (std::size_t b = 0; b < state.barriers.size(); ++b)
    out[static_cast<std::size_t>(of_barrier(static_cast<int>(b)))] = state.barriers[b].phase + 1;
  for (std::size_t n = 0; n < state.named.size(); ++n)
    out[static_cast<std::size_t>(of_named(static_cast<int>(n)))] = state.named[n].generation;
  return out;
}

/// What everybody who goes on knows, by the time that they do. Whoever waits for the cluster has
/// then learned what the others know to have happened.
Clock Machine::common() const {
  Clock out(static_cast<std::size_t>(components()), 0);
  bool some = false, some_seen = false;
  const auto meet = [&](const Clock& c, bool waits) {
    const auto seen = static_cast<std::size_t>(first_seen_);
    for (std::size_t k = seen; k < c.size(); ++k)
      out[k] = some_seen ? std::min(out[k], c[k]) : c[k];
    some_seen = true;
    if (waits) return;
    for (std::size_t k = 0; k < seen; ++k) out[k] = some ? std::min(out[k], c[k]) : c[k];
    some = true;
  };
  for (const Warp& w : state.warps) {
    if (w.ended || w.pc >= program_.codes[static_cast<std::size_t>(w.code)].idle) continue;
    const bool waits = waits_for_cluster(w) && w.cluster_generation == state.cluster.generation;
    meet(w.elected, waits);
    if (!w.forgot) meet(w.others, waits);
  }
  return out;
}

bool Machine::waits_for_cluster(const Warp& w) const {
  const Instruction& i = program_.codes[static_cast<std::size_t>(w.code)].instructions[w.pc];
  if (!w.cluster_come || i.kind != Instruction::Kind::issue) return false;
  const std::vector<arch::Event>& events = i.op->as<core::Issue>()->form->effects.events;
  return std::any_of(events.begin(), events.end(), [](const arch::Event& e) {
    return e.kind == arch::EventKind::cluster_barrier && e.verb == arch::Verb::awaits;
  });
}

/// Everybody who goes on knows that it is finished, and fenced where it may have to be.
bool Machine::settled(const Access& a, const Clock& known) const {
  const auto all = [&](int component, int32_t index) {
    return index == 0 || known[static_cast<std::size_t>(component)] >= index;
  };
  if (a.end.component >= 0) return all(a.end.component, a.end.index);
  return all(part(a.warp, seen_elected), a.elected) && all(part(a.warp, seen_others), a.others) &&
         (!a.generic || (all(part(a.warp, fenced_elected), a.elected) &&
                         all(part(a.warp, fenced_others), a.others)));
}

/// Finished turns of each size, of the warp that is furthest.
std::vector<int64_t> Machine::furthest() const {
  std::vector<int64_t> out(state.tapes.size(), 0);
  for (const Warp& w : state.warps)
    for (std::size_t s = 0; s < out.size(); ++s) out[s] = std::max(out[s], w.finished[s]);
  return out;
}

void Machine::mark(Horizon& h, int component, int32_t index) {
  if (index <= 0) return;
  std::vector<int32_t>& m = h.marks[static_cast<std::size_t>(component)];
  if (m.empty() || m.back() != index) m.push_back(index);
}

void Machine::mark(Horizon& h, const Access& a) const {
  if (a.end.component >= 0) return mark(h, a.end.component, a.end.index);
  for (Part p : {seen_elected, fenced_elected}) mark(h, part(a.warp, p), a.elected);
  for (Part p : {seen_others, fenced_others}) mark(h, part(a.warp, p), a.others);
}

/// Reads that are settled go, and recorded events are gathered.
const Machine::Horizon& Machine::horizon() {
  Horizon& h = horizon_;
  h.now = latest();
  h.known = common();
  h.most = furthest();
  h.marked.clear();
  h.marks.resize(static_cast<std::size_t>(components()));
  for (std::vector<int32_t>& m : h.marks) m.clear();
  for (Cell& cell : state.cells) {
    std::erase_if(cell.reads, [&](const Access& a) { return settled(a, h.known); });
    if (cell.written && !settled(*cell.written, h.known)) mark(h, *cell.written);
    for (const Access& a : cell.reads) mark(h, a);
  }
  for (std::size_t b = 0; b < state.barriers.size(); ++b) {
    const Barrier& bar = state.barriers[b];
    const int at = of_barrier(static_cast<int>(b));
    for (int32_t index : {1, bar.phase, bar.phase + 1}) mark(h, at, index);
    for (const std::vector<Waiter>* all : {&bar.waiters, &bar.expects})
      for (const Waiter& w : *all) mark(h, w.who.component, w.who.index);
    for (const Use& u : bar.uses) {
      mark(h, at, u.phase + 2);
      mark(h, part(u.warp, seen_elected), u.elected);
      mark(h, part(u.warp, seen_others), u.others);
    }
  }
  for (std::size_t n = 0; n < state.named.size(); ++n)
    mark(h, of_named(static_cast<int>(n)), state.named[n].generation);
  for (std::size_t c = 0; c < h.marks.size(); ++c) {
    std::vector<int32_t>& m = h.marks[c];
    if (!m.empty()) h.marked.push_back(c);
    std::sort(m.begin(), m.end());
    m.erase(std::unique(m.begin(), m.end()), m.end());
    if (m.size() > 255) failed = "more events matter at a time than a state can tell";
  }
  return h;
}

}  // namespace tessera::check
