#include "simulate/machine.h"

#include <algorithm>

#include "simulate/domain.h"

namespace tessera::simulate {
namespace {

constexpr int64_t registers_of_a_multiprocessor = 65536;

uint64_t key_of(int warp, uint32_t lanes, uint64_t number) {
  uint64_t key = static_cast<uint64_t>(warp) * 0x9e3779b97f4a7c15ULL;
  key = (key ^ lanes) * 0xff51afd7ed558ccdULL;
  return (key ^ (key >> 29) ^ number) * 0xc4ceb9fe1a85ec53ULL;
}

/// A number for the role of a warp in a block; 0: it has none.
uint64_t role_of(const core::Kernel& kernel, int block, int warp) {
  for (const core::Op& op : kernel.body)
    if (const auto* r = op.as<core::Role>();
        r != nullptr && r->first_warp <= warp && warp < r->first_warp + r->warps)
      return key_of(block, static_cast<uint32_t>(r->first_warp), 1);
  return 0;
}

}  // namespace

Machine::Machine(const Program& program, Scheduler& scheduler, uint64_t seed)
    : program_(program), scheduler_(scheduler), lazy_(scheduler.lazy()) {
  out_.schedule.seed = seed;
}

uint32_t Machine::component(bool lasting) {
  lasting_.push_back(lasting);
  last_clock_.push_back(0);
  return static_cast<uint32_t>(lasting_.size()) - 1;
}

void Machine::start() {
  const core::Kernel& k = program_.kernel;
  const int warps = k.threads / 32;
  const int64_t threads = static_cast<int64_t>(k.threads) * k.min_blocks;
  const int64_t share = std::min<int64_t>(registers_of_a_multiprocessor / threads, 255) / 8 * 8;
  for (std::size_t t = 0; t < k.tensors.size(); ++t) {
    const TensorCode& code = program_.tensors[t];
    TensorState state;
    if (k.tensors[t].access != core::Access::input) {
      const int64_t bytes = code.elements * size_of(k.tensors[t].element);
      state.bytes.assign(static_cast<std::size_t>(held(bytes)), 0xff);
      state.shadow = Shadow(bytes, code.unit, true, false);
      state.writes.assign(static_cast<std::size_t>(code.elements), 0);
    }
    tensors_.push_back(std::move(state));
  }
  clusters_.resize(static_cast<std::size_t>(program_.blocks / k.cluster));
  blocks_.resize(static_cast<std::size_t>(program_.blocks));
  for (int b = 0; b < program_.blocks; ++b) {
    Block& block = blocks_[b];
    const int64_t bytes = k.shared_bytes();
    block.shared.assign(static_cast<std::size_t>(held(bytes)), 0xff);
    block.shadow = Shadow(bytes, program_.shared_unit, false, false);
    block.barriers.resize(static_cast<std::size_t>(program_.barriers));
    for (Barrier& barrier : block.barriers) barrier.component = component(true);
    block.running = warps;
    for (int w = 0; w < warps; ++w) {
      Warp warp{.block = b, .index = w, .role = role_of(k, b, w)};
      warp.registers.resize(k.registers.size());
      warp.queue.component = component(true);
      warp.pool_registers = share;
      warps_.push_back(std::move(warp));
      Strand& s = fresh_strand(b * warps + w);
      s.frame = program_.frame;
      s.frame[program_.block] = b;
      s.frame[program_.rank] = b % k.cluster;
      s.frame[program_.warp] = w;
      become(s, all_lanes);
      advancing_.push_back(s.id);
    }
  }
  begin_tags();
  drain();
}

bool Machine::can_go(const Strand& s) const {
  if (s.status != Strand::Status::ready) return false;
  for (const EventCode& e : s.next->code->events)
    if (e.effect->verb == arch::Verb::awaits && !passes(s, *s.next, e)) return false;
  return true;
}

int64_t Machine::object_of(const Strand& s, bool* waits) const {
  using arch::EventKind;
  const int64_t block = static_cast<int64_t>(warps_[s.warp].block) << 20;
  int64_t object = Actor::nothing;
  *waits = true;
  for (const EventCode& e : s.next->code->events) {
    int64_t here = Actor::nothing;
    switch (e.effect->kind) {
      case EventKind::arrival:
      case EventKind::expectation:
      case EventKind::bytes:
      case EventKind::phase:
        here = s.next->given[e.operand].by_lane || e.blocks >= 0 || e.block >= 0
                   ? Actor::everything
                   : block + s.next->given[e.operand](first_lane(s.mask));
        break;
      case EventKind::named_barrier:
        here = block + (1 << 16) + s.next->given[e.operand](first_lane(s.mask));
        break;
      case EventKind::cluster_barrier:
      case EventKind::register_pool:
        here = block + (1 << 17);
        if (e.effect->kind == EventKind::cluster_barrier && program_.kernel.cluster > 1)
          here = Actor::everything;
        break;
      default:
        break;
    }
    if (here == Actor::nothing) continue;
    object = object == Actor::nothing || object == here ? here : Actor::everything;
    *waits = *waits && e.effect->kind == EventKind::phase;
  }
  return object;
}

std::vector<Actor> Machine::actors() {
  std::vector<Actor> out;
  for (const Strand& s : strands_) {
    if (!can_go(s)) continue;
    Actor a{.key = key_of(s.warp, s.mask, 0), .strand = s.id, .role = warps_[s.warp].role};
    if (lazy_) a.object = object_of(s, &a.waits);
    if (lazy_ && a.object == Actor::nothing) return {a};
    out.push_back(a);
  }
  const bool strands_go = !out.empty();
  for (int id : flying_) {
    const Flight& f = flights_[id];
    if (!ready_to_fly(f)) continue;
    const bool signals = !f.phases.empty() || !f.after.empty();
    if (lazy_ && !signals) {
      if (!strands_go && blocks_[f.call.block].ended) return {{.key = f.key, .flight = id}};
      continue;
    }
    out.push_back({.key = f.key, .flight = id, .object = Actor::everything});
    if (lazy_ && f.phases.size() == 1 && f.call.code->events.size() == 1) {
      const EventCode& e = f.call.code->events.front();
      if (e.blocks < 0)
        out.back().object = (static_cast<int64_t>(f.call.block) << 20) +
                            f.call.given[e.operand](first_lane(f.call.lanes));
    }
  }
  return out;
}

void Machine::step(const Actor& actor) {
  ++out_.steps;
  if (actor.flight >= 0) {
    fly(flights_[actor.flight]);
  } else {
    Strand& s = strands_[actor.strand];
    if (visible(s)) advancing_.push_back(s.id);
  }
  drain();
}

Outcome Machine::run() {
  try {
    start();
    for (;;) {
      if (out_.steps > Simulator::most_steps) {
        say_stuck();
        break;
      }
      const std::vector<Actor> can = actors();
      if (can.empty()) {
        end_run();
        break;
      }
      const std::optional<uint32_t> chosen = scheduler_.choose(can);
      if (!chosen) {
        abandoned_ = true;
        break;
      }
      if (can.size() > 1) out_.schedule.choices.push_back(*chosen);
      step(can[*chosen]);
    }
  } catch (const Ended&) {  // the finding is there
  } catch (const Overflow&) {
    out_.findings.push_back(
        fail(bad_access, "an index does not fit 64 bits").help("run the kernel at smaller sizes"));
  }
  return outcome();
}

template <class Values>
void Machine::take_output(Values values, int tensor) {
  const core::Tensor& t = program_.kernel.tensors[tensor];
  const TensorState& state = tensors_[tensor];
  const int64_t size = size_of(t.element);
  std::vector<typename Values::Value> out(state.writes.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * size;
    out[i] = state.shadow.written(at) ? values.decode(t.element, state.bytes.data() + held(at))
                                      : values.nothing();
  }
  if constexpr (std::is_same_v<Values, Residues>)
    out_.residues[t.name] = std::move(out);
  else
    out_.outputs[t.name] = std::move(out);
}

Outcome Machine::outcome() {
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const core::Tensor& tensor = program_.kernel.tensors[t];
    if (tensor.access != core::Access::output) continue;
    with_values(program_, [&](auto values) { take_output(values, static_cast<int>(t)); });
  }
  return std::move(out_);
}

uint8_t* Machine::memory(arch::Space space, int place, int64_t at) {
  if (plane_ >= 0) return tag_byte(space, place, at);
  std::vector<uint8_t>& bytes =
      space == arch::Space::global ? tensors_[place].bytes : blocks_[place].shared;
  return bytes.data() + held(at);
}

const uint8_t* Machine::read_memory(arch::Space space, int place, int64_t at) {
  if (plane_ >= 0) return tag_byte(space, place, at);
  if (space == arch::Space::global && tensors_[place].bytes.empty())
    return program_.tensors[place].bytes.data() + held(at);
  return memory(space, place, at);
}

// ---- the doors

Result<Simulator> Simulator::make(const core::Kernel& kernel, const Launch& launch) {
  TESSERA_TRY(program, compile(kernel, launch));
  Simulator s;
  s.program_ = std::move(program);
  return s;
}

Outcome Simulator::run(const Schedule& schedule) const {
  Seeded scheduler(schedule);
  return Machine(*program_, scheduler, schedule.seed).run();
}

Exploration Simulator::explore(int64_t most_runs) const {
  Exploration out;
  Exhaustive scheduler;
  do {
    Machine machine(*program_, scheduler, 0);
    Outcome o = machine.run();
    const bool found = !o.findings.empty();
    if (found || !machine.abandoned()) out.last = std::move(o);
    ++out.runs;
    if (found) return out;
    if (!scheduler.advance()) {
      out.complete = true;
      return out;
    }
  } while (out.runs < most_runs);
  return out;
}

Result<Outcome> simulate(const core::Kernel& kernel, const Launch& launch,
                         const Schedule& schedule) {
  TESSERA_TRY(simulator, Simulator::make(kernel, launch));
  return simulator.run(schedule);
}

}  // namespace tessera::simulate
