// Instructions: their arguments' values, what must have been fenced, and what happens at once.
#include <algorithm>

#include "arch/shared_tile.h"

#include "core/walk.h"
#include "simulate/machine.h"
#include "simulate/values.h"

namespace tessera::simulate {

using Kind = OperandCode::Kind;

/// The byte, or what else Given says, of an operand that is a place.
int64_t Machine::address(const Call& call, const OperandCode& o, const Frame& frame) {
  const core::Kernel& k = program_.kernel;
  const auto inside = [&](std::size_t i, int64_t value, int64_t extent, const std::string& name) {
    if (value >= 0 && value < extent) return;
    report_and_end(fail(bad_access, "coordinate {} of `{}` is {}", i, name, value)
                       .expect("0 to {}", extent - 1)
                       .help("bound the access, or mend the index"),
                   call.event);
  };
  int64_t at = 0;
  switch (o.kind) {
    case Kind::shared: {
      const core::Shared& s = k.shared[o.storage];
      const std::vector<Mode>& modes = program_.shared[o.storage];
      for (std::size_t i = 0; i < o.at.size(); ++i) {
        const int64_t c = o.at[i](frame);
        inside(i, c, modes[i].size, s.name);
        at += modes[i](c);
      }
      return arch::swizzle_of(s.swizzle)(s.at + at * size_of(s.element));
    }
    case Kind::barrier:
      at = o.at.front()(frame);
      inside(0, at, k.barriers[o.storage].count, k.barriers[o.storage].name);
      return program_.first_barrier[o.storage] + at;
    case Kind::global: {
      const TensorCode& t = program_.tensors[o.storage];
      const bool scratch = k.tensors[o.storage].access == core::Access::workspace;
      for (std::size_t i = 0; i < o.at.size(); ++i) {
        const int64_t c = o.at[i](frame);
        if (!scratch) inside(i, c, t.extents[i], k.tensors[o.storage].name);
        at += c * t.strides[i];
      }
      return at * size_of(k.tensors[o.storage].element);
    }
    case Kind::registers: {
      const core::Registers& r = k.registers[o.storage];
      at = o.at.front()(frame);
      inside(0, at, program_.slots[o.storage] - o.elements + 1, r.name);
      return at;
    }
    default:
      return 0;
  }
}

void Machine::check_legal(const Call& call, const OperandCode& o, int64_t value) {
  const arch::Operand& form = *o.form;
  const std::string& name = call.code->form->name;
  const bool memory = o.kind == Kind::shared || o.kind == Kind::global;
  if (memory && form.alignment > 0 && value % form.alignment != 0)
    report_and_end(fail(bad_access, "`{}` of `{}` is at byte {}", form.name, name, value)
                       .expect("a multiple of {}", form.alignment),
                   call.event);
  if (o.kind == Kind::integers && form.high > form.low &&
      (value < form.low || value > form.high || (value - form.low) % form.step != 0))
    report_and_end(fail(bad_access, "`{}` of `{}` is {}", form.name, name, value)
                       .expect("{} to {} in steps of {}", form.low, form.high, form.step),
                   call.event);
}

void Machine::operand_value(Call& call, const OperandCode& o, const Frame& frame, int64_t* to) {
  if (o.kind == Kind::integers || o.form->kind == arch::OperandKind::descriptor) {
    if (o.kind == Kind::shared) address(call, o, frame);  // within the bounds
    for (std::size_t i = 0; i < o.at.size(); ++i) {
      to[i] = o.at[i](frame);
      if (o.kind == Kind::integers) check_legal(call, o, to[i]);
    }
    return;
  }
  *to = address(call, o, frame);
  check_legal(call, o, *to);
}

void Machine::resolve(Call& call, int operand, Strand& s, uint32_t lanes) {
  const OperandCode& o = call.code->operands[operand];
  Given& given = call.given[operand];
  const bool list = o.kind == Kind::integers || o.form->kind == arch::OperandKind::descriptor;
  given.per = list ? static_cast<int64_t>(o.at.size()) : 1;
  given.by_lane = o.by_lane;
  given.values.assign(static_cast<std::size_t>(given.per * (o.by_lane ? 32 : 1)), 0);
  if (lanes == 0) return;
  if (!o.by_lane) {
    operand_value(call, o, s.frame, given.values.data());
    return;
  }
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    operand_value(call, o, frame_of_lane(s, lane), given.values.data() + lane * given.per);
  }
  s.frame[program_.lane] = 0;
}

Call Machine::resolve(Strand& s, const Instruction& i) {
  const IssueCode& code = program_.issues[i.index];
  Call call{.machine = this,
            .code = &code,
            .block = warps_[s.warp].block,
            .warp = s.warp,
            .lanes = s.mask,
            .event = log(s)};
  call.given.resize(code.operands.size());
  std::vector<uint32_t> lanes(code.operands.size(), s.mask);
  for (const AccessCode& a : code.accesses) {
    if (a.operand < 0) continue;
    if (a.effect->place == arch::Place::rows && a.lanes < 32)
      lanes[a.operand] &= (1U << a.lanes) - 1;
    if (a.unless_zero < 0) continue;
    resolve(call, a.unless_zero, s, s.mask);
    for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1)
      if (!happens(call, a, first_lane(rest))) lanes[a.operand] &= ~(rest & -rest);
  }
  for (std::size_t o = 0; o < code.operands.size(); ++o)
    if (call.given[o].values.empty()) resolve(call, static_cast<int>(o), s, lanes[o]);
  return call;
}

bool Machine::happens(const Call& call, const AccessCode& access, int lane) {
  return access.unless_zero < 0 || call.given[access.unless_zero](lane) != 0;
}

/// An mbarrier is initialized, and that is ordered and fenced, before it is used.
void Machine::check_made(const Call& call, const Barrier& b, const Knowledge& knows) {
  const std::string& name = call.code->form->name;
  if (!b.live)
    report_and_end(fail(bad_barrier, "`{}` uses an mbarrier that is not initialized", name)
                       .help("initialize it, then let all threads meet before they use it"),
                   call.event);
  if (b.announced && knows.seen[*b.announced] > 0) return;
  if (knows.seen[b.made.component] < b.made.clock)
    report(fail(race, "`{}` uses an mbarrier while it may not be initialized yet", name)
               .expect("a barrier of the block between both")
               .help("let all threads meet after the initialization, by barrier.sync or the "
                     "cluster's barrier"),
           call.event, b.made.event);
  else if (b.fenced == 0 || knows.seen[b.made.component] < b.fenced)
    report(fail(no_proxy_fence, "`{}` uses an mbarrier whose initialization was not fenced", name)
               .expect("`fence.mbarrier_init` by the thread that initialized it, before the "
                       "threads meet")
               .help("put `fence.mbarrier_init` after the last `mbarrier.init`"),
           call.event, b.made.event);
}

/// What must have been fenced, but for the proxies of memory, which accesses find out, and the
/// registers of wgmma.
void Machine::check_needs(const Call& call, const Knowledge& knows) {
  for (const NeedCode& n : call.code->needs) {
    if (n.fence != arch::FenceKind::barrier_init) continue;
    const Given& slot = call.given[n.operand];
    for (uint32_t rest = call.lanes; rest != 0; rest &= rest - 1) {
      const int lane = first_lane(rest);
      std::vector<int> blocks = {call.block};
      for (const EventCode& e : call.code->events)
        if (e.operand == n.operand && e.block >= 0)
          blocks = {arrival_block(call, e, lane)};
        else if (e.operand == n.operand && e.blocks >= 0)
          blocks = targets(call, e.blocks);
      for (int block : blocks) check_made(call, blocks_[block].barriers[slot(lane)], knows);
      if (!slot.by_lane) break;
    }
  }
}

/// The fence releases the initializations before it, and nothing else: relaxed arrivals at the
/// cluster's barrier hand on that they were.
void Machine::announce_barriers(Strand& s, Block& block, uint32_t party, uint32_t clock) {
  for (Barrier& b : block.barriers) {
    if (!b.live || b.made.component != party || b.fenced != 0) continue;
    b.fenced = clock;
    b.announced = component(true);
    s.knows.seen.raise(*b.announced, 1);
  }
}

void Machine::apply_fences(Strand& s, const Call& call) {
  using arch::FenceKind;
  Warp& w = warps_[s.warp];
  for (const arch::Fence& f : call.code->form->effects.fences) {
    if (f.kind == FenceKind::wgmma_registers) ++w.queue.fences;
    if (f.kind != FenceKind::async_proxy && f.kind != FenceKind::barrier_init) continue;
    for (Warp::Party& p : w.parties) {
      const uint32_t seen = s.knows.seen[p.component];
      if (f.kind == FenceKind::barrier_init) {
        if ((p.lanes & ~s.mask) == 0) announce_barriers(s, blocks_[w.block], p.component, seen);
        continue;
      }
      for (uint32_t rest = p.lanes & s.mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::size_t>(first_lane(rest));
        p.shared_fenced[lane] = seen;
        if (f.space == arch::Space::global) p.global_fenced[lane] = seen;
      }
    }
    know_fences(s);
    tick(s);
  }
}

/// What lanes did together is fenced as far as each of them has fenced it. Who is not among them
/// learns that where they meet.
void Machine::know_fences(Strand& s) {
  for (const Warp::Party& p : warps_[s.warp].parties) {
    if ((p.lanes & ~s.mask) != 0) continue;
    uint32_t shared = UINT32_MAX, global = UINT32_MAX;
    for (uint32_t rest = p.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(first_lane(rest));
      shared = std::min(shared, p.shared_fenced[lane]);
      global = std::min(global, p.global_fenced[lane]);
    }
    s.knows.shared_fenced.raise(p.component, shared);
    s.knows.global_fenced.raise(p.component, global);
  }
}

/// Of a kernel that may start early: what the grids before it may still use, it has to leave alone.
void Machine::check_grids(const Call& call) {
  uint32_t& waited = warps_[call.warp].after_grids;
  if (core::waits_for_grids(*call.code->form)) waited |= call.lanes;
  if ((call.lanes & ~waited) == 0) return;
  for (const AccessCode& a : call.code->accesses) {
    if (a.effect->space != arch::Space::global || a.effect->proxy == arch::Proxy::tensormap)
      continue;
    report(fail(race, "`{}` touches global memory before `grid.wait`", call.code->form->name)
               .expect("`grid.wait` of the same thread, since the kernel may start while the grids "
                       "before it run")
               .help("put `grid.wait` before the roles, where all threads come by"),
           call.event);
    return;
  }
}

void Machine::at_once(Strand& s, Call& call) {
  if (program_.early) check_grids(call);
  check_needs(call, s.knows);
  if (asynchronous_product(call))
    issue_product(call);
  else
    touch_operands(call);
  if (call.code->asynchronous && !call.code->accesses.empty()) {
    take_off(s, call);
  } else {
    for (const AccessCode& a : call.code->accesses) {
      const Mark mark{.component = s.component,
                      .clock = s.knows.seen[s.component],
                      .event = call.event,
                      .async = a.effect->proxy == arch::Proxy::async,
                      .atomic = a.effect->atomic != arch::Scope::thread};
      touch(call, a, mark, s.knows);
    }
    if (call.code->semantics->take != nullptr) call.code->semantics->take(call);
    follow(call, false);
  }
  apply_fences(s, call);
  for (const EventCode& e : call.code->events) {
    if (e.effect->verb != arch::Verb::signals) continue;
    if (e.effect->when == arch::When::with_prior_copies) late_arrival(s, call);
    if (e.effect->when == arch::When::at_once) commit(s, e);
  }
}

/// One that others may see, whose wait is over. True when the strand goes on.
bool Machine::visible(Strand& s) {
  Call call = std::move(*s.next);
  s.next.reset();
  s.status = Strand::Status::moving;
  at_once(s, call);
  for (const EventCode& e : call.code->events)
    if (e.effect->verb == arch::Verb::signals && e.effect->when == arch::When::at_once &&
        !signal(s, call, e))
      return false;
  for (const EventCode& e : call.code->events)
    if (e.effect->verb == arch::Verb::awaits) acquire(s, call, e);
  ++s.pc;
  return true;
}

}  // namespace tessera::simulate
