// Asynchronous operations: each is a party of its own that acts at some time after it was issued.
#include <algorithm>

#include "simulate/machine.h"
#include "simulate/values.h"

namespace tessera::simulate {

using arch::Completion;
using arch::EventKind;

namespace {

bool counts_bytes(const EventCode& e) {
  return e.effect->kind == EventKind::bytes && e.effect->when == arch::When::with_accesses;
}

}  // namespace

void Machine::take_off(Strand& s, const Call& call) {
  const bool each =
      std::any_of(call.code->accesses.begin(), call.code->accesses.end(), [](const AccessCode& a) {
        return a.effect->place == arch::Place::once || a.effect->place == arch::Place::box;
      });
  Flight f{.call = call};
  f.wgmma = asynchronous_product(call);
  for (const AccessCode& a : call.code->accesses)
    f.reads_first = f.reads_first || a.effect->until == Completion::bulk_group_read;
  if (!each || (s.mask & (s.mask - 1)) == 0) return depart(std::move(f), s);
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
    Flight one = f;
    one.call.lanes = rest & -rest;
    depart(std::move(one), s);
  }
}

/// A component whose last flight the strand knows to be over, else a new one.
uint32_t Machine::free_component(const Strand& s) {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const uint32_t c = free_[i];
    if (s.knows.seen[c] < last_clock_[c]) continue;
    free_[i] = free_.back();
    free_.pop_back();
    return c;
  }
  return component(true);
}

void Machine::depart(Flight f, Strand& s) {
  Warp& w = warps_[s.warp];
  const int id = static_cast<int>(flights_.size());
  f.knows = s.knows;
  if (f.wgmma) {
    f.component = w.queue.component;
    f.clock = ++w.queue.issued;
    w.queue.flights.push_back(id);
  } else {
    f.component = free_component(s);
    f.clock = last_clock_[f.component] + 1;
    last_clock_[f.component] = f.clock + (f.reads_first ? 1 : 0);
  }
  f.knows.seen.set(f.component, f.clock);
  Warp::Party& by = party(w, s.mask);
  f.key = (static_cast<uint64_t>(s.warp) << 40) ^ (static_cast<uint64_t>(s.mask) << 20) ^
          (++by.flights * 0x9e3779b97f4a7c15ULL);
  for (const EventCode& e : f.call.code->events) {
    if (!counts_bytes(e)) continue;
    for (int block : targets(f.call, e.blocks))
      f.phases.push_back(barrier(block, f.call.given[e.operand](first_lane(f.call.lanes))).phase);
  }
  bool bulk = false, copy = false;
  for (const AccessCode& a : f.call.code->accesses) {
    bulk = bulk || a.effect->until == Completion::bulk_group;
    copy = copy || a.effect->until == Completion::cp_async_group;
  }
  for (uint32_t rest = f.call.lanes; rest != 0; rest &= rest - 1) {
    if (bulk) w.bulk[first_lane(rest)].open.push_back(id);
    if (copy) w.copies[first_lane(rest)].open.push_back(id);
  }
  flights_.push_back(std::move(f));
  flying_.push_back(id);
  tick(s);
}

bool Machine::ready_to_fly(const Flight& f) const {
  if (f.wgmma) return &flights_[warps_[f.call.warp].queue.flights.front()] == &f;
  return lazy_ || std::all_of(f.after.begin(), f.after.end(),
                              [&](int id) { return flights_[id].stage == Flight::Stage::done; });
}

/// One action: all, or of a bulk store what it reads, then what it writes.
void Machine::fly(Flight& f) {
  const bool first = f.stage == Flight::Stage::started;
  const bool last = !first || !f.reads_first;
  for (int id : f.after)
    while (flights_[id].stage != Flight::Stage::done) fly(flights_[id]);
  if (!f.after.empty()) {
    land(f);
    return;
  }
  for (const AccessCode& a : f.call.code->accesses) {
    const bool early = a.effect->until == Completion::bulk_group_read ||
                       a.effect->until == Completion::at_once || !f.reads_first;
    if (early != first) continue;
    const Mark mark{.component = f.component,
                    .clock = f.clock + (first ? 0 : 1),
                    .event = f.call.event,
                    .async = a.effect->proxy == arch::Proxy::async,
                    .atomic = a.effect->atomic != arch::Scope::thread};
    touch(f.call, a, mark, f.knows);
  }
  const Semantics& semantics = *f.call.code->semantics;
  if (first && semantics.take != nullptr) semantics.take(f.call);
  if (first) follow(f.call, false);
  if (last && semantics.put != nullptr) semantics.put(f.call);
  if (last) follow(f.call, true);
  f.stage = Flight::Stage::read;
  if (last) land(f);
}

void Machine::land(Flight& f) {
  f.stage = Flight::Stage::done;
  const auto id = std::find_if(flying_.begin(), flying_.end(),
                               [&](int other) { return &flights_[other] == &f; });
  flying_.erase(id);
  if (f.wgmma) {
    Queue& q = warps_[f.call.warp].queue;
    q.flights.pop_front();
    q.done = f.clock;
  } else if (f.after.empty()) {
    free_.push_back(f.component);
  }
  count_bytes(f);
  f.call.taken.clear();
  f.call.taken.shrink_to_fit();
  f.call.tags_taken = {};
  f.knows.clear();
}

void Machine::count_bytes(Flight& f) {
  const Call& call = f.call;
  std::size_t n = 0;
  for (const EventCode& e : call.code->events) {
    const int64_t slot = e.operand >= 0 ? call.given[e.operand](first_lane(call.lanes)) : 0;
    if (e.effect->when == arch::When::with_prior_copies && !f.after.empty()) {
      Barrier& b = barrier(call.block, slot);
      b.arriving.join(f.knows);
      arrive(call, call.block, slot, 1);
      complete_if_done(call.block, slot);
      continue;
    }
    if (!counts_bytes(e)) continue;
    for (int block : targets(call, e.blocks)) {
      Barrier& b = barrier(block, slot);
      if (b.phase != f.phases[n++])
        report_and_end(
            fail(bad_barrier, "{} bytes come to {} after the phase in which `{}` was issued",
                 amount(call, e), barrier_text(block, slot), call.code->form->name)
                .expect("the phase expects them, so that it is not complete before")
                .help("expect the bytes of every copy, by mbarrier.arrive_expect_tx or "
                      "mbarrier.expect_tx"),
            call.event);
      b.bytes -= amount(call, e);
      b.arriving.seen.raise(f.component, f.clock);
      complete_if_done(block, slot);
    }
  }
}

// ---- groups

void Machine::commit(Strand& s, const EventCode& e) {
  Warp& w = warps_[s.warp];
  if (e.effect->kind == EventKind::wgmma_group) w.queue.groups.push_back(w.queue.issued);
  const bool bulk = e.effect->kind == EventKind::bulk_group;
  if (!bulk && e.effect->kind != EventKind::cp_async_group) return;
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
    Groups& g = (bulk ? w.bulk : w.copies)[first_lane(rest)];
    g.closed.push_back(std::move(g.open));
    g.open.clear();
  }
}

/// The last wgmma of the groups that must be complete.
uint32_t Machine::queue_target(const Warp& w, int64_t pending) const {
  const auto groups = static_cast<int64_t>(w.queue.groups.size());
  return groups > pending ? w.queue.groups[groups - 1 - pending] : 0;
}

std::vector<int> Machine::awaited(const Warp& w, int lane, const EventCode& e,
                                  int64_t pending) const {
  const bool copies = e.effect->kind == EventKind::cp_async_group;
  const Groups& g = (copies ? w.copies : w.bulk)[lane];
  std::vector<int> out;
  for (int64_t i = 0; i + pending < static_cast<int64_t>(g.closed.size()); ++i)
    out.insert(out.end(), g.closed[i].begin(), g.closed[i].end());
  return out;
}

bool Machine::groups_done(const Strand& s, const Call& call, const EventCode& e) const {
  const Warp& w = warps_[s.warp];
  const int64_t pending = amount(call, e);
  if (e.effect->kind == EventKind::wgmma_group) return w.queue.done >= queue_target(w, pending);
  const auto enough =
      e.effect->kind == EventKind::bulk_group_read ? Flight::Stage::read : Flight::Stage::done;
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1)
    for (int id : awaited(w, first_lane(rest), e, pending))
      if (flights_[id].stage < enough) return false;
  return true;
}

void Machine::finish_groups(Strand& s, const Call& call, const EventCode& e) {
  Warp& w = warps_[s.warp];
  const int64_t pending = amount(call, e);
  if (e.effect->kind == EventKind::wgmma_group) {
    const uint32_t target = queue_target(w, pending);
    while (w.queue.done < target) fly(flights_[w.queue.flights.front()]);
    w.queue.seen = std::max(w.queue.seen, target);
    s.knows.seen.raise(w.queue.component, target);
    return;
  }
  const bool reads = e.effect->kind == EventKind::bulk_group_read;
  const auto enough = reads ? Flight::Stage::read : Flight::Stage::done;
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1)
    for (int id : awaited(w, first_lane(rest), e, pending)) {
      Flight& f = flights_[id];
      while (f.stage < enough) fly(f);
      s.knows.seen.raise(f.component, f.clock + (reads || !f.reads_first ? 0 : 1));
    }
}

/// An arrival when all cp.async of each thread so far are complete.
void Machine::late_arrival(Strand& s, const Call& call) {
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    Flight f{.call = call};
    f.call.lanes = rest & -rest;
    const Groups& g = warps_[s.warp].copies[lane];
    f.after = g.open;
    for (const std::vector<int>& group : g.closed)
      f.after.insert(f.after.end(), group.begin(), group.end());
    for (int id : f.after) f.knows.seen.raise(flights_[id].component, flights_[id].clock);
    if (f.after.empty()) {
      const int64_t slot = call.given[call.code->operand("barrier")](lane);
      arrive(call, call.block, slot, 1);
      complete_if_done(call.block, slot);
      continue;
    }
    f.key = (static_cast<uint64_t>(s.warp) << 40) ^ (1ULL << 63) ^
            (++party(warps_[s.warp], s.mask).flights * 0x9e3779b97f4a7c15ULL);
    flying_.push_back(static_cast<int>(flights_.size()));
    flights_.push_back(std::move(f));
  }
}

}  // namespace tessera::simulate
