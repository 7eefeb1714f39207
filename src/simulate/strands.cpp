// Control flow: lanes that go together, part where a condition differs, and meet where an
// instruction is the whole warp's.
#include <algorithm>

#include "simulate/machine.h"

namespace tessera::simulate {

Warp::Party& Machine::party(Warp& w, uint32_t lanes) {
  for (Warp::Party& p : w.parties)
    if (p.lanes == lanes) return p;
  w.parties.push_back({lanes, component(false), 0});
  return w.parties.back();
}

Strand& Machine::fresh_strand(int warp) {
  Strand* free = nullptr;
  for (Strand& s : strands_)
    if (s.status == Strand::Status::gone) free = &s;
  if (free == nullptr) {
    strands_.emplace_back();
    free = &strands_.back();
    free->id = static_cast<int>(strands_.size()) - 1;
  }
  free->warp = warp;
  free->pc = 0;
  free->status = Strand::Status::moving;
  free->knows.clear();
  free->next.reset();
  warps_[warp].strands.push_back(free->id);
  return *free;
}

/// A set of lanes has a component of its own, which counts on when the same lanes part again.
void Machine::become(Strand& s, uint32_t lanes) {
  s.mask = lanes;
  s.component = party(warps_[s.warp], lanes).component;
  tick(s);
}

Strand& Machine::part(Strand& s, uint32_t lanes) {
  Strand& other = fresh_strand(s.warp);
  other.knows = s.knows;
  other.frame = s.frame;
  become(other, lanes);
  become(s, s.mask & ~lanes);
  ++blocks_[warps_[s.warp].block].running;
  advancing_.push_back(other.id);
  return other;
}

Frame& Machine::frame_of_lane(Strand& s, int lane) {
  s.frame[program_.lane] = lane;
  return s.frame;
}

void Machine::drain() {
  while (!advancing_.empty()) {
    const int id = advancing_.back();
    advancing_.pop_back();
    advance(strands_[id]);
  }
}

void Machine::advance(Strand& s) {
  for (;;) {
    if (++out_.steps > Simulator::most_steps) say_stuck();
    const Instruction& i = program_.code[s.pc];
    const bool meets = i.kind == CodeKind::elect ||
                       (i.kind == CodeKind::issue && program_.issues[i.index].whole_warp);
    if (meets && s.mask != all_lanes && !meet(s)) return;
    if (i.kind != CodeKind::issue) {
      if (!control(s, i)) return;
      continue;
    }
    Call call = resolve(s, i);
    if (call.code->visible) {
      s.next = std::move(call);
      s.status = Strand::Status::ready;
      return;
    }
    at_once(s, call);
    ++s.pc;
  }
}

bool Machine::control(Strand& s, const Instruction& i) {
  switch (i.kind) {
    case CodeKind::compute:
      compute(s, i);
      ++s.pc;
      return true;
    case CodeKind::tags:
      tag(s, i);
      ++s.pc;
      return true;
    case CodeKind::declare:
      declare(s, i.index);
      ++s.pc;
      return true;
    case CodeKind::jump:
      s.pc = i.target;
      return true;
    case CodeKind::set:
      s.frame[i.place] = i.value(s.frame);
      ++s.pc;
      return true;
    case CodeKind::next:
      s.frame[i.place] += i.value(s.frame);
      s.pc = i.target;
      return true;
    case CodeKind::role: {
      const int warp = warps_[s.warp].index;
      const bool mine = warp >= i.first && warp < i.first + i.count;
      s.frame[i.place] = mine ? warp - i.first : 0;
      s.pc = mine ? s.pc + 1 : i.target;
      return true;
    }
    case CodeKind::branch:
      return branch(s, i);
    case CodeKind::elect:
      return elect(s, i);
    default:
      end(s);
      return false;
  }
}

bool Machine::branch(Strand& s, const Instruction& i) {
  uint32_t yes = 0;
  if (!i.by_lane) {
    yes = i.value(s.frame) != 0 ? s.mask : 0;
  } else {
    for (uint32_t rest = s.mask; rest != 0; rest &= rest - 1) {
      const int lane = first_lane(rest);
      if (i.value(frame_of_lane(s, lane)) != 0) yes |= 1U << lane;
    }
    s.frame[program_.lane] = 0;
  }
  const auto leave = [&](Strand& t) {
    t.pc = i.target;
    if (i.place >= 0) t.frame[i.place] = 0;
  };
  if (yes != 0 && yes != s.mask) leave(part(s, s.mask & ~yes));
  if (yes == 0)
    leave(s);
  else
    ++s.pc;
  return true;
}

bool Machine::elect(Strand& s, const Instruction& i) {
  Strand& others = part(s, s.mask & (s.mask - 1));
  others.pc = i.target;
  ++s.pc;
  return true;
}

/// True when all lanes are here; then they go on as `s`. What the lanes did before is taken to be
/// ordered by it.
bool Machine::meet(Strand& s) {
  Warp& w = warps_[s.warp];
  uint32_t here = s.mask;
  std::vector<int> with;
  for (int id : w.strands) {
    const Strand& o = strands_[id];
    if (id == s.id || o.status != Strand::Status::meeting || o.pc != s.pc || o.frame != s.frame)
      continue;
    here |= o.mask;
    with.push_back(id);
  }
  if (here != all_lanes) {
    s.status = Strand::Status::meeting;
    check_meeting(s);
    return false;
  }
  for (int id : with) {
    Strand& o = strands_[id];
    s.knows.join(o.knows);
    o.status = Strand::Status::gone;
    w.strands.erase(std::find(w.strands.begin(), w.strands.end(), id));
    --blocks_[w.block].running;
  }
  s.status = Strand::Status::moving;
  become(s, all_lanes);
  know_fences(s);
  return true;
}

/// Lanes that wait for others that can no longer come.
void Machine::check_meeting(const Strand& s) {
  const Warp& w = warps_[s.warp];
  for (int id : w.strands) {
    const Strand& o = strands_[id];
    if (o.status != Strand::Status::meeting) return;
  }
  const Instruction& i = program_.code[s.pc];
  const std::string name =
      i.kind == CodeKind::issue ? program_.issues[i.index].form->name : "an elected lane's body";
  const uint32_t event = log(s);
  report_and_end(fail(stuck, "lanes of a warp do not come to `{}`", name)
                     .expect("all 32 lanes at the same instruction")
                     .but_found("lanes {:#x}", s.mask)
                     .help("issue it outside of conditions that depend on the lane"),
                 event);
}

void Machine::end(Strand& s) {
  Warp& w = warps_[s.warp];
  Block& block = blocks_[w.block];
  s.status = Strand::Status::gone;
  w.strands.erase(std::find(w.strands.begin(), w.strands.end(), s.id));
  w.ended |= s.mask;
  block.last.join(s.knows);
  for (int id : w.strands)
    if (strands_[id].status == Strand::Status::meeting) check_meeting(strands_[id]);
  if (--block.running == 0) end_block(w.block);
}

}  // namespace tessera::simulate
