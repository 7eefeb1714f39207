// Barriers, fences and groups of a run.
#include <algorithm>
#include <utility>

#include "check/machine.h"

namespace tessera::check {
namespace {

using arch::EventKind;
using arch::Verb;

std::optional<std::size_t> operand_of(const arch::Form& form, std::string_view name) {
  for (std::size_t i = 0; i < form.operands.size(); ++i)
    if (form.operands[i].name == name) return i;
  return std::nullopt;
}

}  // namespace

int64_t Machine::amount(const Warp& w, const Instruction& i, const arch::Amount& a) {
  const auto& issue = *i.op->as<core::Issue>();
  if (a.of == arch::Amount::Of::box) {
    const std::optional<std::size_t> map = operand_of(*issue.form, a.name);
    const auto* ref = map ? std::get_if<core::MapRef>(&issue.arguments[*map]) : nullptr;
    if (ref == nullptr) return 0;
    const core::TensorMap& m = kernel_[ref->map];
    int64_t bytes = a.times * size_of(kernel_[m.tensor].element);
    for (int64_t extent : m.box) bytes *= extent;
    return bytes;
  }
  if (a.of == arch::Amount::Of::operand) {
    const std::optional<std::size_t> at = operand_of(*issue.form, a.name);
    if (!at || i.arguments[*at].empty()) return 0;
    return a.times * value(w, i.arguments[*at][0]);
  }
  return arch::value_of(a, issue.choices).value_or(0);
}

int Machine::barrier_of(int at, const Instruction& i, std::string_view operand, int block) {
  const auto& issue = *i.op->as<core::Issue>();
  const std::optional<std::size_t> place = operand_of(*issue.form, operand);
  const auto* b = place ? std::get_if<core::BarrierAt>(&issue.arguments[*place]) : nullptr;
  if (b == nullptr) return -1;
  const int64_t slot = value(state.warps[static_cast<std::size_t>(at)], i.arguments[*place][0]);
  if (slot < 0 || slot >= kernel_[b->barriers].count) {
    report("bounds", at, i,
           fmt::format("an index leaves the barriers `{}`", kernel_[b->barriers].name),
           fmt::format("0 to {}", kernel_[b->barriers].count - 1), std::to_string(slot),
           "take it modulo the number of slots");
    return -1;
  }
  return block * barriers_ + first_barrier_[static_cast<std::size_t>(b->barriers.index)] +
         static_cast<int>(slot);
}

bool Machine::can_pass(int at, const Instruction& i) {
  const arch::Form& form = *i.op->as<core::Issue>()->form;
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  for (const arch::Event& e : form.effects.events) {
    if (e.verb != Verb::awaits) continue;
    if (e.kind == EventKind::phase) {
      const int b = barrier_of(at, i, e.operand);
      if (b < 0) return true;
      const Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
      if (bar.ready && (bar.phase & 1) == amount(w, i, e.amount)) return false;
    }
    if (e.kind == EventKind::named_barrier && w.waits_named) {
      const int64_t id = amount(w, i, arch::Amount::operand(e.operand));
      const auto n =
          static_cast<std::size_t>(int64_t{16} * block_of(at) + std::clamp<int64_t>(id, 0, 15));
      if (state.named[n].generation <= w.named_generation) return false;
    }
    if (e.kind == EventKind::cluster_barrier && w.cluster_come &&
        state.cluster.generation <= w.cluster_generation)
      return false;
  }
  return true;
}

void Machine::event(int at, const Instruction& i, const arch::Event& e) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const int64_t times = i.elected ? 1 : 32;
  switch (e.kind) {
    case EventKind::arrival:
      if (const int block = target(at, i, e); block >= 0)
        if (const int b = barrier_of(at, i, e.operand, block); b >= 0)
          arrive(at, i, e, b, times * amount(w, i, e.amount));
      return;
    case EventKind::expectation:
      if (const int b = barrier_of(at, i, e.operand); b >= 0)
        expect(at, i, b, times * amount(w, i, e.amount));
      return;
    case EventKind::bytes:
      targets(at, i, e.blocks, targets_);
      for (int block : targets_)
        if (const int b = barrier_of(at, i, e.operand, block); b >= 0)
          deliver(at, i, b, times * amount(w, i, e.amount));
      return;
    case EventKind::phase:
      if (const int b = barrier_of(at, i, e.operand); b >= 0) wait(at, i, e, b);
      return;
    case EventKind::named_barrier:
      return named(at, i, e);
    case EventKind::cluster_barrier:
      return e.verb == Verb::signals ? come_to_cluster(at, i, e) : wait_for_cluster(at, i);
    case EventKind::wgmma_group:
    case EventKind::bulk_group:
    case EventKind::bulk_group_read:
      if (e.verb == Verb::awaits) return retire(at, e.kind, amount(w, i, e.amount));
      if (e.kind == EventKind::wgmma_group) {
        ++w.wgmma_groups;
        w.wgmma_open = false;
      } else {
        ++w.bulk_groups;
        w.bulk_open = false;
      }
      return;
    default:
      return;
  }
}

/// Comes to a named barrier, or goes on when its turn is complete.
void Machine::named(int at, const Instruction& i, const arch::Event& e) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const int64_t id = amount(w, i, arch::Amount::operand(e.operand));
  if (e.verb == Verb::signals) return come(at, i, id, amount(w, i, e.amount));
  const int number = 16 * block_of(at) + static_cast<int>(std::clamp<int64_t>(id, 0, 15));
  const Named& n = state.named[static_cast<std::size_t>(number)];
  if (n.generation <= w.named_generation) {
    w.waits_named = true;
    return;
  }
  w.waits_named = false;
  if (n.generation > w.named_generation + 1)
    report("named_barriers", at, i,
           fmt::format("barrier {} completes another turn while a warp still waits", id),
           "all that wait have gone on", "the next turn is complete",
           "give every warp that comes the number of all threads that come");
  for (Clock* c : {&w.elected, &w.others}) {
    learn(*c, n.done);
    (*c)[static_cast<std::size_t>(of_named(number))] = w.named_generation + 1;
  }
}

void Machine::fence(int at, const Instruction& i, const arch::Fence& f) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  if (f.kind == arch::FenceKind::async_proxy) {
    w.elected[static_cast<std::size_t>(part(at, fenced_elected))] = w.elected_index;
    if (!i.elected) w.others[static_cast<std::size_t>(part(at, fenced_others))] = w.others_index;
    w.together = false;
  } else if (f.kind == arch::FenceKind::wgmma_registers) {
    w.touched.clear();
    w.perhaps_touched.clear();
  } else if (f.kind == arch::FenceKind::barrier_init) {
    for (int b : w.initialized) {
      int32_t& known = w.elected[static_cast<std::size_t>(of_barrier(b))];
      known = std::max(known, 1);
    }
    w.initialized.clear();
    w.together = false;
  }
}

void Machine::initialize(int at, const Instruction& i) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const int b = barrier_of(at, i, "barrier");
  if (b < 0) return;
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  if (bar.ready || !i.elected)
    report("barrier_init", at, i, "a barrier is initialized twice", "once, by one thread",
           bar.ready ? "a second time" : "by all lanes of a warp",
           "initialize it in one elected lane, before all use", bar.made, "initialized before");
  bar.ready = true;
  bar.made = i.op;
  bar.count = bar.pending = amount(w, i, arch::Amount::operand("count"));
  w.initialized.push_back(b);
}

/// Whether all who execute this know that the phase before the current one is complete, and that
/// the barrier is initialized.
bool Machine::knows_phase(int at, const Instruction& i, int b) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  const auto c = static_cast<std::size_t>(of_barrier(b));
  const int32_t known = i.elected ? w.elected[c] : std::min(w.elected[c], w.others[c]);
  if (known < 1 || !bar.ready) {
    report("barrier_init", at, i, "a barrier is used before it is known to be initialized",
           "`mbarrier.init`, `fence.mbarrier_init` by the same thread, then a barrier of the block",
           !bar.ready   ? "no initialization"
           : known == 0 ? "no fence, or no barrier, in between"
                        : "",
           "fence after the initializations and let the block meet before the first use", bar.made,
           "initialized here");
    return bar.ready;
  }
  if (known >= bar.phase + 1) return true;
  report("arrivals", at, i,
         "what comes to a barrier may count for an earlier phase than it is meant for",
         fmt::format("whoever comes in phase {} knows that phase {} is complete", bar.phase,
                     bar.phase - 1),
         "it comes without having waited for that", "wait for the phase before coming to the next",
         bar.last, "came before it");
  return true;
}

void Machine::arrive(int at, const Instruction& i, const arch::Event& e, int b, int64_t times) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const int block = b / barriers_;
  reach(at, i, block);
  if (!knows_phase(at, i, b)) return;
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  const bool own = block == block_of(at);
  const bool releases = e.order == arch::Ordering::release || e.order == arch::Ordering::both;
  learn(bar.coming, w.elected, own && releases);
  if (!i.elected) learn(bar.coming, w.others, own && releases);
  if (!own && releases && e.scope >= arch::Scope::cluster) {
    bar.coming_cluster.resize(bar.coming.size(), 0);
    learn(bar.coming_cluster, w.elected);
    if (!i.elected) learn(bar.coming_cluster, w.others);
  }
  if (!own) use(at, i, b);
  if (times > bar.pending)
    report("arrivals", at, i, "more arrivals come to a phase than the barrier counts",
           fmt::format("{} a phase", bar.count),
           fmt::format("{} more when {} were due", times, bar.pending),
           "initialize the barrier with the number of its arrivals", bar.last, "came before it");
  // The phase is not complete before this arrival, nor before what comes before it.
  std::erase_if(bar.expects, [&](const Waiter& x) {
    const auto c = static_cast<std::size_t>(x.who.component);
    return w.elected[c] >= x.who.index || (!i.elected && w.others[c] >= x.who.index);
  });
  bar.pending = std::max<int64_t>(bar.pending - times, 0);
  bar.last = i.op;
  if (bar.pending == 0 && bar.bytes == 0) complete(b);
}

void Machine::expect(int at, const Instruction& i, int b, int64_t bytes) {
  if (!knows_phase(at, i, b)) return;
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  bar.bytes += bytes;
  bar.expected += bytes;
  bar.last = i.op;
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  bar.expects.push_back({{part(at, elected), w.elected_index}, i.op, at});
  if (!i.elected) bar.expects.push_back({{part(at, others), w.others_index}, i.op, at});
  if (bar.pending == 0 && bar.bytes == 0) complete(b);
}

/// A copy is issued when its thread's waits have ended; of what the thread wrote it says nothing.
void Machine::deliver(int at, const Instruction& i, int b, int64_t bytes) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  reach(at, i, b / barriers_);
  if (!knows_phase(at, i, b)) return;
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  learn(bar.coming, w.elected, false);
  bar.bytes -= bytes;
  bar.delivered += bytes;
  bar.last = i.op;
  if (bar.pending == 0 && bar.bytes == 0) complete(b);
}

/// A phase that is complete: waits for the one before have ended, and it has expected its bytes.
void Machine::complete(int b) {
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  for (const Waiter& x : bar.expects) {
    Instruction at;
    at.op = x.op;
    report("arrivals", x.warp, at, "a phase may be complete before it expects these bytes",
           "an arrival of the phase that comes after this in every execution",
           "no arrival is known to", "expect the bytes and arrive after it, in the same thread",
           bar.last, "completes the phase");
  }
  bar.expects.clear();
  for (const Waiter& waiter : bar.waiters) {
    if (bar.coming[static_cast<std::size_t>(waiter.who.component)] >= waiter.who.index) continue;
    const bool lanes = waiter.who.component == part(waiter.warp, others);
    Instruction at;
    at.op = waiter.op;
    report("phase_window", waiter.warp, at,
           "a wait may be overtaken: the next phase can complete before it has looked",
           fmt::format("phase {} needs an arrival that comes after this wait for phase {}",
                       bar.phase, bar.phase - 1),
           lanes ? "the lanes that are not elected may still wait when all have arrived"
                 : "all its arrivals may come first",
           lanes ? "let the warp meet (`warp.sync`) between the wait and the arrival"
                 : "let the thread that waits come to the next phase, or to one before it",
           bar.last, "completes the next phase");
  }
  bar.waiters.clear();
  bar.done = bar.coming;
  bar.coming.assign(bar.coming.size(), 0);
  bar.done_cluster = std::exchange(bar.coming_cluster, {});
  ++bar.phase;
  bar.done[static_cast<std::size_t>(of_barrier(b))] = bar.phase + 1;
  bar.pending = bar.count;
  bar.copied = bar.delivered > 0;
  bar.expected = bar.delivered = 0;
}

void Machine::wait(int at, const Instruction& i, const arch::Event& e, int b) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  if (!bar.ready) {
    knows_phase(at, i, b);
    return;
  }
  const auto c = static_cast<std::size_t>(of_barrier(b));
  const int32_t known = i.elected ? w.elected[c] : std::min(w.elected[c], w.others[c]);
  if (known < 1) knows_phase(at, i, b);
  if (known >= 1 && known < bar.phase)
    report("phase_window", at, i, "a wait may mean an earlier phase of the same parity",
           fmt::format("whoever waits for phase {} knows that phase {} is complete", bar.phase - 1,
                       bar.phase - 2),
           "it has not waited for that", "wait for every phase in turn", bar.last,
           "came to the barrier");
  const auto wait_of = [&](Clock& clock, Part p, int32_t index) {
    learn(clock, bar.done);
    if (e.scope >= arch::Scope::cluster && !bar.done_cluster.empty())
      learn(clock, bar.done_cluster);
    clock[c] = std::max({clock[c], bar.phase + 1, 1});
    bar.waiters.push_back({{part(at, p), index}, i.op, at});
  };
  wait_of(w.elected, elected, w.elected_index);
  if (i.elected)
    w.together = false;
  else
    wait_of(w.others, others, w.others_index);
}

void Machine::come(int at, const Instruction& i, int64_t id, int64_t threads) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  if (id < 0 || id > 15) {
    report("named_barriers", at, i, fmt::format("there is no named barrier {}", id), "0 to 15",
           std::to_string(id), "number the barriers of the block from 0 to 15");
    return;
  }
  const int number = 16 * block_of(at) + static_cast<int>(id);
  Named& n = state.named[static_cast<std::size_t>(number)];
  if (n.come == 0) n.expects = threads;
  if (n.expects != threads || threads % 32 != 0 || threads < 32)
    report(
        "named_barriers", at, i, fmt::format("warps come to barrier {} with different counts", id),
        fmt::format("{} threads, as the others say", n.expects), fmt::format("{} threads", threads),
        "give every warp that comes the number of all threads that come");
  if (w.elected[static_cast<std::size_t>(of_named(number))] < n.generation)
    report("named_barriers", at, i,
           fmt::format("a warp may come to barrier {} a turn too early", id),
           "it knows that the turn before is complete", "it has not waited for it",
           "use another number, or wait on this one before");
  w.named = number;
  w.named_generation = n.generation;
  learn(n.coming, w.elected);
  learn(n.coming, w.others);
  const auto place = std::lower_bound(n.who.begin(), n.who.end(), at);
  if (place != n.who.end() && *place == at)
    report("named_barriers", at, i, fmt::format("a warp comes to barrier {} twice in a turn", id),
           "each warp once", "it has come already", "let a warp either arrive or wait");
  n.who.insert(place, at);
  n.come += 32;
  if (n.come < n.expects) return;
  n.who.clear();
  n.done = n.coming;
  n.coming.assign(n.coming.size(), 0);
  n.come = 0;
  ++n.generation;
}

void Machine::retire(int at, EventKind kind, int64_t pending) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto raise = [&](Clock& clock, Part p, int32_t to) {
    int32_t& known = clock[static_cast<std::size_t>(part(at, p))];
    known = std::max(known, to);
  };
  if (kind == EventKind::wgmma_group) {
    const auto done = static_cast<int32_t>(w.wgmma_groups - pending);
    raise(w.elected, wgmma, done);
    raise(w.others, wgmma, done);
    std::erase_if(w.flights, [&](const Flight& f) { return f.group <= done; });
    return;
  }
  // Bulk groups are a thread's own: those of the elected lane.
  w.together = false;
  const auto done = static_cast<int32_t>(w.bulk_groups - pending);
  raise(w.elected, bulk_read, done);
}

}  // namespace tessera::check
