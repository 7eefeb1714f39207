// Events between threads: mbarriers, named barriers, the cluster's barrier, the pool of registers.
#include <algorithm>

#include "simulate/machine.h"

namespace tessera::simulate {

using arch::EventKind;
using arch::Ordering;
using arch::Scope;

namespace {
constexpr int64_t most_bytes = (int64_t{1} << 20) - 1;  // PTX ISA, "mbarrier": tx-count
}

void Machine::make_barriers(const Call& call, const Mark& by) {
  const IssueCode& code = *call.code;
  const bool init = code.form->operand("count") != nullptr;
  const Given& slot = call.given[code.operand("barrier")];
  for (uint32_t rest = call.lanes; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    Barrier& b = barrier(call.block, slot(lane));
    if (init && b.live)
      report(fail(bad_barrier, "mbarrier initialized twice")
                 .expect("one thread initializes it, or `mbarrier.inval` stands between"),
             call.event, b.made.event);
    // Nobody knows of the new one's phases.
    const uint32_t counter = b.phase > 0 ? component(true) : b.component;
    b = Barrier{};
    b.component = counter;
    if (!init) continue;
    b.live = true;
    b.count = b.pending = call.given[code.operand("count")](lane);
    b.made = by;
  }
}

/// Of what `from` knows, the doings of asynchronous operations and completed phases.
void Machine::join_agents(Knowledge& to, const Knowledge& from) {
  for (uint32_t c = 0; c < from.seen.size(); ++c)
    if (lasting_[c]) to.seen.raise(c, from.seen[c]);
}

void Machine::release(Barrier& b, const Knowledge& from, Ordering order, Scope scope,
                      bool own_block) {
  const bool releases = order == Ordering::release || order == Ordering::both;
  if (releases && own_block) {
    b.arriving.join(from);
  } else {
    join_agents(b.arriving, from);
    if (releases && scope >= Scope::cluster) b.arriving_cluster.join(from);
  }
}

void Machine::complete_if_done(int block, int64_t slot) {
  Barrier& b = barrier(block, slot);
  if (b.pending != 0 || b.bytes != 0) return;
  ++b.phase;
  b.pending = b.count;
  b.released = std::move(b.arriving);
  b.released_cluster = std::move(b.arriving_cluster);
  b.arriving.clear();
  b.arriving_cluster.clear();
  b.released.seen.raise(b.component, b.phase);
}

void Machine::arrive(const Call& call, int block, int64_t slot, int64_t count) {
  Barrier& b = barrier(block, slot);
  if (count > b.pending)
    report_and_end(
        fail(bad_barrier, "{} arrive at {} in a phase that lacks {}", count,
             barrier_text(block, slot), b.pending)
            .expect("{} arrivals a phase, as it was initialized, and bytes that come", b.count)
            .but_found("{} bytes that are expected and have not come", b.bytes)
            .help("count the arrivals of a phase: each thread that executes one arrives"),
        call.event);
  b.pending -= count;
}

/// The block whose mbarrier an event is of.
int Machine::arrival_block(const Call& call, const EventCode& e, int lane) {
  if (e.block < 0) return call.block;
  const int cluster = program_.kernel.cluster;
  const int64_t rank = call.given[e.block](lane);
  if (rank < 0 || rank >= cluster)
    report_and_end(
        fail(bad_access, "`{}` names block {} of its cluster", call.code->form->name, rank)
            .expect("0 to {}", cluster - 1),
        call.event);
  return call.block - call.block % cluster + static_cast<int>(rank);
}

bool Machine::signal(Strand& s, const Call& call, const EventCode& e) {
  const arch::Event& event = *e.effect;
  if (event.kind == EventKind::named_barrier) {
    const bool waits =
        std::any_of(call.code->events.begin(), call.code->events.end(),
                    [](const EventCode& o) { return o.effect->verb == arch::Verb::awaits; });
    return named_arrive(s, call, e, waits);
  }
  if (event.kind == EventKind::cluster_barrier) {
    cluster_arrive(s, call, e);
    return true;
  }
  if (event.kind == EventKind::register_pool) {
    Warp& w = warps_[s.warp];
    const int64_t keeps = amount(call, e);
    blocks_[w.block].pool += 32 * std::max<int64_t>(0, w.pool_registers - keeps);
    w.pool_registers = std::min(w.pool_registers, keeps);
    return true;
  }
  if (event.kind != EventKind::arrival && event.kind != EventKind::expectation) return true;
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    const int64_t slot = call.given[e.operand](lane);
    const int block = arrival_block(call, e, lane);
    Barrier& b = barrier(block, slot);
    const int64_t count = e.amount >= 0 ? event.amount.times * call.given[e.amount](lane) : e.fixed;
    if (event.kind == EventKind::expectation) {
      b.bytes += count;
      if (b.bytes > most_bytes)
        report_and_end(fail(bad_barrier, "{} expects {} bytes", barrier_text(block, slot), b.bytes)
                           .expect("at most {}", most_bytes),
                       call.event);
      continue;
    }
    // Whoever knows of the phase's end, or of what the strand did next, knows that the arrival is
    // over.
    if (block != call.block)
      use(block, {.component = b.component, .clock = b.phase + 1, .event = call.event}, &s);
    release(b, s.knows, event.order, event.scope, block == call.block);
    arrive(call, block, slot, count);
    complete_if_done(block, slot);
  }
  tick(s);
  return true;
}

/// The phase that a thread waits for that names a parity: the first of that parity, from the last
/// one on that it knows to be complete.
int64_t Machine::intended_phase(const Knowledge& knows, const Barrier& b, int64_t parity) const {
  const int64_t known = static_cast<int64_t>(knows.seen[b.component]) - 1;
  return ((known & 1) == parity) ? known : known + 1;
}

bool Machine::passes(const Strand& s, const Call& call, const EventCode& e) const {
  switch (e.effect->kind) {
    case EventKind::phase:
      for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
        const int lane = first_lane(rest);
        const Barrier& b = blocks_[call.block].barriers[call.given[e.operand](lane)];
        // One that is not initialized is found when the strand goes on.
        if (b.live && intended_phase(s.knows, b, call.given[e.amount](lane)) >= b.phase)
          return false;
        if (!call.given[e.operand].by_lane && !call.given[e.amount].by_lane) break;
      }
      return true;
    case EventKind::cp_async_group:
    case EventKind::bulk_group_read:
    case EventKind::bulk_group:
    case EventKind::wgmma_group:
      return lazy_ || groups_done(s, call, e);
    case EventKind::cluster_barrier: {
      const Warp& w = warps_[s.warp];
      return clusters_[w.block / program_.kernel.cluster].generation >= w.cluster_arrivals;
    }
    case EventKind::register_pool: {
      const Warp& w = warps_[s.warp];
      return 32 * (amount(call, e) - w.pool_registers) <= blocks_[w.block].pool;
    }
    default:
      return true;
  }
}

void Machine::acquire_phase(Strand& s, const Call& call, const EventCode& e) {
  for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    const int64_t slot = call.given[e.operand](lane);
    const Barrier& b = barrier(call.block, slot);
    const int64_t wanted = intended_phase(s.knows, b, call.given[e.amount](lane));
    if (wanted + 1 < static_cast<int64_t>(b.phase))
      report_and_end(
          fail(bad_barrier, "a wait for phase {} of {} comes when phase {} is complete already",
               wanted, barrier_text(call.block, slot), b.phase - 1)
              .expect("phase {} or {}: one bit of parity tells no more", wanted, wanted + 1)
              .help("let the barrier's next phases depend on the threads that wait"),
          call.event);
    s.knows.join(b.released);
    if (e.effect->scope >= Scope::cluster) s.knows.join(b.released_cluster);
    if (!call.given[e.operand].by_lane) return;
  }
}

void Machine::acquire(Strand& s, const Call& call, const EventCode& e) {
  Warp& w = warps_[s.warp];
  switch (e.effect->kind) {
    case EventKind::phase:
      return acquire_phase(s, call, e);
    case EventKind::cluster_barrier:
      if (w.cluster_arrivals == 0 || w.cluster_waits == w.cluster_arrivals)
        report_and_end(
            fail(bad_barrier, "a warp waits at the cluster's barrier without having come")
                .expect("`cluster.arrive` before each `cluster.wait`"),
            call.event);
      w.cluster_waits = w.cluster_arrivals;
      s.knows.join(clusters_[w.block / program_.kernel.cluster].released);
      return;
    case EventKind::register_pool: {
      const int64_t more = std::max<int64_t>(0, amount(call, e) - w.pool_registers);
      blocks_[w.block].pool -= 32 * more;
      w.pool_registers += more;
      return;
    }
    case EventKind::cp_async_group:
    case EventKind::bulk_group_read:
    case EventKind::bulk_group:
    case EventKind::wgmma_group:
      return finish_groups(s, call, e);
    default:
      return;
  }
}

void Machine::wake(Strand& s, const Knowledge& released) {
  s.knows.join(released);
  s.status = Strand::Status::moving;
  s.next.reset();
  ++s.pc;
  advancing_.push_back(s.id);
}

/// True when the strand goes on. One that waits goes on when the barrier is complete.
bool Machine::named_arrive(Strand& s, const Call& call, const EventCode& e, bool waits) {
  const int64_t id = call.given[e.operand](first_lane(s.mask));
  const int64_t threads = amount(call, e);
  Named& n = blocks_[call.block].named[id];
  const auto refuse = [&](const std::string& found) {
    report_and_end(
        fail(bad_barrier, "`{}` misuses named barrier {}", call.code->form->name, id)
            .expect("{} threads, each warp once, and all say the same number", n.expected)
            .but_found("{}", found)
            .help("use another number, or let all that come say the same"),
        call.event, n.last_event);
  };
  if (n.arrived > 0 && n.expected != threads) refuse(fmt::format("{} threads", threads));
  if (std::find(n.arrivals.begin(), n.arrivals.end(), s.warp) != n.arrivals.end())
    refuse(fmt::format("warp {} for the second time", warps_[s.warp].index));
  n.expected = threads;
  n.arrived += 32;
  n.last_event = call.event;
  n.arrivals.push_back(s.warp);
  n.arriving.join(s.knows);
  tick(s);
  if (n.arrived < n.expected) {
    if (!waits) return true;
    s.status = Strand::Status::named;
    n.waiting.push_back(s.id);
    s.next = call;
    return false;
  }
  for (int id_of : n.waiting) wake(strands_[id_of], n.arriving);
  if (waits) s.knows.join(n.arriving);
  n = Named{};
  return true;
}

void Machine::cluster_arrive(Strand& s, const Call& call, const EventCode& e) {
  const int cluster = program_.kernel.cluster;
  Warp& w = warps_[s.warp];
  ClusterBarrier& c = clusters_[w.block / cluster];
  if (w.cluster_arrivals != w.cluster_waits)
    report_and_end(fail(bad_barrier, "a warp comes to the cluster's barrier twice without waiting")
                       .expect("`cluster.wait` between two `cluster.arrive`"),
                   call.event);
  ++w.cluster_arrivals;
  if (e.effect->order == Ordering::relaxed)
    join_agents(c.arriving, s.knows);
  else
    c.arriving.join(s.knows);
  tick(s);
  if (++c.arrived < cluster * program_.kernel.threads / 32) return;
  c.arrived = 0;
  ++c.generation;
  c.released = std::move(c.arriving);
  c.arriving.clear();
}

}  // namespace tessera::simulate
