// Shared memory and registers of a run.
#include <algorithm>

#include "base/text.h"

#include "check/machine.h"

namespace tessera::check {
namespace {

using arch::Completion;
using arch::Place;
using arch::Proxy;
using arch::Space;

std::optional<std::size_t> operand_of(const arch::Form& form, std::string_view name) {
  for (std::size_t i = 0; i < form.operands.size(); ++i)
    if (form.operands[i].name == name) return i;
  return std::nullopt;
}

bool needs(const arch::Form& form, arch::FenceKind fence, std::string_view operand) {
  return std::any_of(form.effects.needs.begin(), form.effects.needs.end(),
                     [&](const auto& n) { return n.fence == fence && n.operand == operand; });
}

}  // namespace

void SlotSet::add(const Slots& s) {
  Slots out = s;
  std::erase_if(runs_, [&](const Slots& r) {
    if (r.id != s.id || r.begin > out.end || out.begin > r.end) return false;
    out.begin = std::min(out.begin, r.begin);
    out.end = std::max(out.end, r.end);
    return true;
  });
  runs_.push_back(out);
}

void SlotSet::remove(core::RegistersId id) {
  std::erase_if(runs_, [&](const Slots& r) { return r.id == id; });
}

bool SlotSet::covers(const Slots& s) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const Slots& r) {
    return r.id == s.id && r.begin <= s.begin && s.end <= r.end;
  });
}

bool SlotSet::overlaps(const Slots& s) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const Slots& r) { return r.overlaps(s); });
}

void Machine::leaves(int at, const Instruction& i, const core::Shared& s,
                     const std::vector<int64_t>& coordinates) {
  std::vector<std::string> text;
  for (int64_t c : coordinates) text.push_back(std::to_string(c));
  report("bounds", at, i, fmt::format("an index leaves the shared memory `{}`", s.name),
         fmt::format("an element of {}", to_string(s.layout)),
         fmt::format("[{}]", tessera::join(text, ", ")),
         "keep each index within its extent; take a slot modulo the number of slots");
}

/// The footprint of an access of shared memory; -1 where it leaves its storage.
int Machine::footprint(int at, const Instruction& i, const arch::Access& a, std::size_t operand) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& issue = *i.op->as<core::Issue>();
  const auto& shared_at = std::get<core::SharedAt>(issue.arguments[operand]);
  const core::Shared& s = kernel_[shared_at.shared];
  const std::vector<Value>& terms = i.arguments[operand];
  if (a.place == Place::once || a.place == Place::box || a.place == Place::matrix) {
    const std::vector<int64_t>& coordinates = values(w, terms);
    Footprints::Key& key = key_;
    key.assign({0, shared_at.shared.index});
    key.insert(key.end(), coordinates.begin(), coordinates.end());
    if (a.place != Place::matrix) {
      const int64_t bytes = amount(w, i, a.bytes);
      key.insert(key.end(), {-1, bytes});
      return footprints_.get(key, [&] {
        if (!byte_of(s, coordinates)) return leaves(at, i, s, coordinates), std::vector<Bytes>();
        const int64_t start = s.at + size_of(s.element) * s.layout.at(coordinates);
        return std::vector<Bytes>{{start, start + bytes}};
      });
    }
    const std::optional<arch::Wgmma> wgmma = wgmma_of(issue);
    if (!wgmma) return -1;
    const bool is_a = a.operand == "a";
    // The last two modes are m or n, then k, whichever is contiguous.
    const int64_t rows = is_a ? arch::Wgmma::m : wgmma->n, columns = wgmma->k();
    key.insert(key.end(), {-2, rows, columns});
    return footprints_.get(key, [&] {
      const std::vector<int64_t> start = coordinates;
      if (!byte_of(s, start)) leaves(at, i, s, start);
      return matrix_bytes(s, start, rows, columns);
    });
  }
  return lanes_footprint(at, i, a, operand);
}

/// Of an address a lane: found by what the address depends on, the lane aside.
int Machine::lanes_footprint(int at, const Instruction& i, const arch::Access& a,
                             std::size_t operand) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& issue = *i.op->as<core::Issue>();
  const core::Shared& s = kernel_[std::get<core::SharedAt>(issue.arguments[operand]).shared];
  const std::vector<Value>& terms = i.arguments[operand];
  Footprints::Key& key = key_;
  key.assign({1, static_cast<int64_t>(reinterpret_cast<intptr_t>(i.op)), i.elected ? 1 : 0});
  const auto lane = static_cast<std::size_t>(kernel_.at.lane->symbol->index);
  for (const Value& v : terms)
    for (int symbol : (shifted_ ? v.shifted : v.exact).symbols())
      if (static_cast<std::size_t>(symbol) != lane)
        key.push_back(w.values[static_cast<std::size_t>(symbol)]);
  const int64_t bytes = amount(w, i, a.bytes);
  const int64_t lanes = a.place == Place::rows ? amount(w, i, a.lanes) : 32;
  bool inside = true;
  std::optional<uint64_t> own;  // of a new one
  const int print = footprints_.get(key, [&] {
    std::vector<Bytes> ranges;
    for (int64_t l = 0; l < lanes; ++l) {
      w.values[lane] = l;
      const std::vector<int64_t>& coordinates = values(w, terms);
      if (const std::optional<int64_t> byte = byte_of(s, coordinates)) {
        ranges.push_back({*byte, *byte + bytes});
      } else if (inside) {
        inside = false;
        leaves(at, i, s, coordinates);
      }
    }
    w.values[lane] = 0;
    if (!i.elected) own = lanes_of(ranges);
    return ranges;
  });
  if (own) footprints_.set_lanes(print, *own);
  return print;
}

void Machine::access(int at, const Instruction& i, const arch::Access& a) {
  if (a.space != Space::shared && a.space != Space::cluster_shared) return;
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& issue = *i.op->as<core::Issue>();
  const std::optional<std::size_t> operand = operand_of(*issue.form, a.operand);
  if (!operand || std::get_if<core::SharedAt>(&issue.arguments[*operand]) == nullptr) return;
  if (!a.unless_zero.empty() && amount(w, i, arch::Amount::operand(a.unless_zero)) == 0) return;
  if (w.forgot && !i.elected) failed = "lanes that are not elected go on alone";
  const int print = footprint(at, i, a, *operand);
  if (print < 0 || footprints_.grown()) return;
  if (a.action == arch::Action::write && !i.elected && footprints_.lanes(print) == 0 &&
      (a.place == Place::lanes || a.place == Place::rows) && !operand_of(*issue.form, "inside"))
    report("race_shared", at, i, "two lanes of one instruction write one byte",
           "bytes of its own for each lane",
           fmt::format("lanes share bytes of `{}`",
                       kernel_[std::get<core::SharedAt>(issue.arguments[*operand]).shared].name),
           "let each lane write elements of its own");
  Access mine;
  mine.op = i.op;
  mine.lanes = footprints_.lanes(print);
  mine.warp = at;
  mine.write = a.action != arch::Action::read;
  mine.generic = a.proxy == Proxy::generic;
  mine.block = block_of(at);
  if (!i.loops.empty()) {
    mine.size = i.loops.back().size;
    mine.turns = w.finished[static_cast<std::size_t>(mine.size)];
  }
  switch (a.until) {
    case Completion::at_once:
      mine.elected = w.elected_index;
      mine.others = i.elected ? 0 : w.others_index;
      break;
    case Completion::barrier_bytes:
      return copy(at, i, a, mine, print);
    case Completion::wgmma_group:
      mine.end = {part(at, wgmma), w.wgmma_groups + 1};
      break;
    case Completion::bulk_group_read:
    case Completion::bulk_group:
      mine.end = {part(at, bulk_read), w.bulk_groups + 1};
      w.bulk_open = true;
      break;
    case Completion::cp_async_group:
      failed = "cp.async is not modelled";
      break;
  }
  touch_cells(at, i, mine, print, needs(*issue.form, arch::FenceKind::async_proxy, a.operand));
}

/// A copy that counts its bytes at a barrier, to every block that its operand names.
void Machine::copy(int at, const Instruction& i, const arch::Access& a, Access mine, int print) {
  const arch::Form& form = *i.op->as<core::Issue>()->form;
  targets(at, i, a.blocks, targets_);
  for (int block : targets_) {
    const int b = barrier_of(at, i, "barrier", block);
    if (b < 0) return;
    mine.block = block;
    mine.end = {of_barrier(b), state.barriers[static_cast<std::size_t>(b)].phase + 2};
    touch_cells(at, i, mine, print, needs(form, arch::FenceKind::async_proxy, a.operand));
  }
}

void Machine::touch_cells(int at, const Instruction& i, const Access& mine, int print,
                          bool needs_fence) {
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  for (int c : footprints_.cells(print)) {
    Cell& cell = state.cells[static_cast<std::size_t>(mine.block) *
                                 static_cast<std::size_t>(footprints_.cell_count()) +
                             static_cast<std::size_t>(c)];
    if (cell.written) ordered(at, i, *cell.written, mine, needs_fence, c);
    if (mine.write) {
      for (const Access& read : cell.reads) ordered(at, i, read, mine, needs_fence, c);
      cell.written = mine;
      cell.reads.clear();
      continue;
    }
    if (!cell.written) report_unwritten(at, i, mine.block, c);
    note_read(mine, cell, w);
    const bool there = std::any_of(cell.reads.begin(), cell.reads.end(), [&](const Access& r) {
      return r.op == mine.op && r.warp == mine.warp && r.elected == mine.elected &&
             r.end.component == mine.end.component && r.end.index == mine.end.index;
    });
    if (!there) cell.reads.push_back(mine);
  }
}

void Machine::note_read(const Access& mine, const Cell& cell, const Warp& reader) {
  if (!cell.written) return;
  const Access& wrote = *cell.written;
  const int64_t turns =
      wrote.size < 0 ? 0 : reader.finished[static_cast<std::size_t>(wrote.size)] - wrote.turns;
  reads_from.insert({mine.op, wrote.op, turns, block_of(mine.warp), block_of(wrote.warp)});
}

/// Reports where `before` is not known to be finished, or not fenced. True where all is well.
bool Machine::ordered(int at, const Instruction& i, const Access& before, const Access& mine,
                      bool needs_fence, int cell) {
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto known = [&](int component, int32_t index) {
    const auto c = static_cast<std::size_t>(component);
    return index == 0 ||
           (w.elected[c] >= index && (i.elected || w.together || w.others[c] >= index));
  };
  // Each lane's own accesses are in its order.
  if (before.warp == mine.warp && mine.lanes != 0 && before.lanes == mine.lanes) return true;
  bool finished = true, fenced = true;
  if (before.end.component < 0) {
    finished = known(part(before.warp, seen_elected), before.elected) &&
               known(part(before.warp, seen_others), before.others);
    fenced = !needs_fence || !before.generic ||
             (known(part(before.warp, fenced_elected), before.elected) &&
              known(part(before.warp, fenced_others), before.others));
  } else {
    finished = known(before.end.component, before.end.index);
  }
  if (finished && fenced) return true;
  const std::string where =
      fmt::format("byte {} of shared memory{}", footprints_.byte(cell),
                  blocks_ == 1 ? "" : fmt::format(" of block {}", mine.block));
  if (!finished)
    report("race_shared", at, i,
           before.write
               ? (mine.write ? "shared memory is written while an earlier write may be under way"
                             : "shared memory is read before its write is known to be finished")
               : "shared memory is overwritten while it may still be read",
           fmt::format("the {} of {} is finished before this in every execution",
                       before.write ? "write" : "read", where),
           "no barrier orders them",
           before.write ? "wait for the write to finish before this"
                        : "let the reader arrive after its read has ended, and wait for that",
           before.op, before.write ? "written here" : "read here");
  else
    report("proxy_fence", at, i,
           "accesses by the generic proxy are not fenced before one by the async proxy",
           "`fence.async` in each thread that accessed it, before it hands over",
           fmt::format("none for {}", where),
           "issue `fence.async.shared::cta` after the access and before the barrier", before.op,
           "accessed here by the generic proxy");
  return false;
}

void Machine::use_registers(int at, const Instruction& i, const Slots& s, bool read, bool write) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const std::string& name = kernel_[s.id].name;
  const bool in_flight = std::any_of(w.flights.begin(), w.flights.end(), [&](const Flight& f) {
    return std::any_of(f.locked.begin(), f.locked.end(),
                       [&](const Slots& locked) { return locked.overlaps(s); });
  });
  if (i.perhaps && (in_flight || (read && !w.holds.covers(s)))) {
    doubt = fmt::format("a condition on more than numbers of turns may touch registers `{}`", name);
    return;
  }
  if (i.perhaps) w.perhaps_touched.add(s);
  for (const Flight& f : w.flights)
    for (const Slots& locked : f.locked)
      if (locked.overlaps(s))
        report("async_registers", at, i,
               fmt::format("registers `{}` are touched while a wgmma uses them", name),
               "`wgmma.wait` for its group first",
               fmt::format("group {} may be under way", f.group),
               "wait for the group before touching its registers", f.op, "in flight from here");
  if (read && !w.holds.covers(s))
    report("initialized", at, i, fmt::format("registers `{}` are read that hold nothing", name),
           "a value", fmt::format("slots {} to {} without one", s.begin, s.end - 1),
           "write them before");
  if (write) w.holds.add(s);
  w.touched.add(s);
}

void Machine::multiply(int at, const Instruction& i,
                       const std::vector<std::pair<std::size_t, Slots>>& used) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& issue = *i.op->as<core::Issue>();
  Flight mine{w.wgmma_groups + 1, i.op, {}};
  for (const auto& [operand, s] : used) {
    const arch::Operand& o = issue.form->operands[operand];
    if (w.perhaps_touched.overlaps(s))
      doubt = fmt::format("a condition on more than numbers of turns may touch registers `{}`",
                          kernel_[s.id].name);
    else if (w.touched.overlaps(s))
      report("async_registers", at, i,
             fmt::format("no fence stands between accesses of registers `{}` and this",
                         kernel_[s.id].name),
             "`wgmma.fence` after the last access of them", "none",
             "issue `wgmma.fence` before the first wgmma");
    bool reads = true;
    if (o.direction == arch::Direction::inout) {
      const std::optional<std::size_t> keeps = operand_of(*issue.form, "accumulate");
      reads = !keeps || value(w, i.arguments[*keeps][0]) != 0;
    }
    if (reads && o.direction != arch::Direction::out && !w.holds.covers(s))
      report("initialized", at, i,
             fmt::format("a wgmma adds to registers `{}` that hold nothing", kernel_[s.id].name),
             "a value", "none", "let the first product overwrite them: accumulate = 0");
    if (o.direction != arch::Direction::in) w.holds.add(s);
    mine.locked.push_back(s);
  }
  w.wgmma_open = true;
  w.flights.push_back(std::move(mine));
}

void Machine::registers(int at, const Instruction& i) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& issue = *i.op->as<core::Issue>();
  std::vector<std::pair<std::size_t, Slots>> used;
  for (std::size_t k = 0; k < issue.arguments.size() && k < issue.form->operands.size(); ++k) {
    const auto* slice = std::get_if<core::Slice>(&issue.arguments[k]);
    if (slice == nullptr) continue;
    const int64_t count = i.slots[k].taken * i.times;
    const int64_t first = value(w, i.arguments[k][0]);
    if (first < 0 || first + count > i.slots[k].all) {
      report("bounds", at, i,
             fmt::format("an index leaves the registers `{}`", kernel_[slice->registers].name),
             fmt::format("{} slots", i.slots[k].all),
             fmt::format("{} to {}", first, first + count - 1),
             "keep the slice within the registers");
      continue;
    }
    used.emplace_back(k, Slots{slice->registers, first, first + count});
  }
  if (!used.empty() && wgmma_of(issue)) return multiply(at, i, used);
  for (const auto& [k, s] : used) {
    const arch::Direction d = issue.form->operands[k].direction;
    use_registers(at, i, s, d != arch::Direction::out, d != arch::Direction::in);
  }
}

std::vector<Slots> Machine::slots_of(const Warp& w, const core::Run& run, const Value& first) {
  auto [place, is_new] = runs_.try_emplace(&run);
  if (is_new) {
    SlotSet set;
    for (int64_t e = 0; e < run.steps.size(); ++e)
      set.add({run.registers, run.steps(e), run.steps(e) + 1});
    for (const Slots& s : set.runs()) place->second.emplace_back(s.begin, s.end);
  }
  const int64_t from = value(w, first);
  std::vector<Slots> out;
  for (const auto& [begin, end] : place->second)
    out.push_back({run.registers, from + begin, from + end});
  return out;
}

void Machine::computes(int at, const Instruction& i) {
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  const auto& c = *i.op->as<core::Compute>();
  std::size_t k = 0;
  for (const auto& input : c.inputs)
    if (const auto* run = std::get_if<core::Run>(&input))
      for (const Slots& s : slots_of(w, *run, i.arguments[k++][0]))
        use_registers(at, i, s, true, false);
  for (const core::Run& run : c.results)
    for (const Slots& s : slots_of(w, run, i.arguments[k++][0]))
      use_registers(at, i, s, false, true);
  seen.insert(i.op);
}

}  // namespace tessera::check
