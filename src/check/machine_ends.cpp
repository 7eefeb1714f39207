// How a run ends: warps and blocks that end, and warps that cannot go on.
#include <algorithm>

#include "base/text.h"

#include "check/machine.h"

namespace tessera::check {

using arch::Issuer;

/// Some thread of the block knows of the event; with `ended`, one of a warp that has ended.
bool Machine::known_in(int block, int component, int32_t index, bool ended) const {
  const auto c = static_cast<std::size_t>(component);
  for (int k = block * warps_; k < (block + 1) * warps_; ++k) {
    const Warp& w = state.warps[static_cast<std::size_t>(k)];
    if (ended && !w.ended) continue;
    if (w.elected[c] >= index || w.others[c] >= index) return true;
  }
  return false;
}

/// Some thread of the block knows that the arrival is over: as its phase is complete, or as the
/// thread that arrived has released it.
bool Machine::known_in(int block, int b, const Use& u) const {
  return known_in(block, of_barrier(b), u.phase + 2) ||
         (known_in(block, part(u.warp, seen_elected), u.elected) &&
          (u.others == 0 || known_in(block, part(u.warp, seen_others), u.others)));
}

/// Arrivals that the block knows of matter no more: it knows of them when it ends.
void Machine::drop_uses() {
  for (std::size_t b = 0; b < state.barriers.size(); ++b) {
    const int at = static_cast<int>(b);
    std::erase_if(state.barriers[b].uses,
                  [&](const Use& u) { return known_in(at / barriers_, at, u); });
  }
}

void Machine::end_warp(int at) {
  state.warps[static_cast<std::size_t>(at)].ended = true;
  const int block = block_of(at);
  if (--state.running[static_cast<std::size_t>(block)] == 0) end_block(block);
}

/// What copies, products and other blocks do to the block's shared memory is known to be over.
void Machine::end_block(int block) {
  const auto is_bulk = [&](int c) { return c < 4 * warps() && c % 4 == bulk_read; };
  const auto over = [&](const Access& a) {
    if (a.end.component < 0 || is_bulk(a.end.component)) return;
    if (known_in(block, a.end.component, a.end.index)) return;
    Instruction at;
    at.op = a.op;
    report("exit_order", a.warp, at,
           a.write ? "a block ends while a copy may still write its shared memory"
                   : "a block ends while its shared memory may still be read",
           "some thread of the block has waited for that", "none has",
           "wait for all copies and products before the block ends");
  };
  const std::size_t cells = state.cells.size() / static_cast<std::size_t>(blocks_);
  for (std::size_t c = 0; c < cells; ++c) {
    const Cell& cell = state.cells[static_cast<std::size_t>(block) * cells + c];
    if (cell.written) over(*cell.written);
    for (const Access& a : cell.reads) over(a);
  }
  for (int b = block * barriers_; b < (block + 1) * barriers_; ++b)
    for (const Use& u : state.barriers[static_cast<std::size_t>(b)].uses) {
      if (known_in(block, b, u)) continue;
      Instruction at;
      at.op = u.op;
      report("exit_order", u.warp, at,
             "a block may end before an arrival of another block at its barrier",
             fmt::format("block {} of the cluster ends after this in every execution", block),
             "no thread of it knows that the arrival is over",
             "let the cluster meet before its blocks end, by `cluster.arrive` and `cluster.wait`; "
             "`cluster.arrive_relaxed` says nothing of arrivals before it");
    }
}

/// What a warp that is stuck waits for, and the op that came there last.
std::string Machine::still_waits(int at, const Instruction& i, const core::Op*& last) {
  for (const arch::Event& e : i.op->as<core::Issue>()->form->effects.events) {
    if (e.verb != arch::Verb::awaits) continue;
    if (e.kind == arch::EventKind::cluster_barrier)
      return fmt::format("{} of the cluster's {} warps have come", state.cluster.come, warps());
    if (e.kind != arch::EventKind::phase) continue;
    const int b = barrier_of(at, i, e.operand);
    if (b < 0) continue;
    const Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
    last = bar.last;
    if (bar.pending == 0 && bar.bytes != 0)
      report("arrivals", at, i, "a phase expects other bytes than its copies bring",
             fmt::format("{} bytes", bar.expected), fmt::format("{} bytes", bar.delivered),
             "expect the bytes of the boxes that are copied, whole ones also at the edge");
    return fmt::format("{} of {} arrivals and {} of {} bytes have come to phase {}, no more do",
                       bar.count - bar.pending, bar.count, bar.delivered, bar.expected, bar.phase);
  }
  return "it never comes";
}

void Machine::report_stuck() {
  // Who waits where warps meet waits for those who wait at an mbarrier: these tell more.
  std::vector<std::string> blocked;
  int first = -1;
  bool meets = true;
  for (int k = 0; k < warps(); ++k) {
    const Warp& w = state.warps[static_cast<std::size_t>(k)];
    if (w.ended || (first >= 0 && !meets)) continue;
    const Instruction& i = program_.codes[static_cast<std::size_t>(w.code)].instructions[w.pc];
    const auto* issue = i.op != nullptr ? i.op->as<core::Issue>() : nullptr;
    const bool at_mbarrier = issue != nullptr && issue->form->name.starts_with("mbarrier.");
    if (first < 0 || at_mbarrier) first = k;
    meets = !at_mbarrier;
  }
  if (first < 0) return;
  for (int k = 0; k < warps(); ++k)
    if (k != first && !state.warps[static_cast<std::size_t>(k)].ended)
      blocked.push_back(blocks_ == 1 ? std::to_string(k)
                                     : fmt::format("{}:{}", block_of(k), k % warps_));
  const Warp& w = state.warps[static_cast<std::size_t>(first)];
  const Instruction& i = program_.codes[static_cast<std::size_t>(w.code)].instructions[w.pc];
  const core::Op* last = nullptr;
  const std::string found = still_waits(first, i, last);
  report("deadlock", first, i,
         fmt::format("`{}` waits for ever", i.op->as<core::Issue>()->form->name),
         "what it waits for comes in every execution", found,
         blocked.empty() ? "let each phase get its arrivals and bytes"
                         : "let each phase get its arrivals and bytes; warps that wait too: " +
                               tessera::join(blocked, ", "),
         last, "the last that came");
}

void Machine::finish() {
  for (int k = 0; k < warps(); ++k) end_groups(k);
  for (int block = 0; block < blocks_; ++block)
    for (int first = 0; first + 4 <= warps_; first += 4) end_warpgroup(block * warps_ + first);
}

/// The thread's bulk stores have read their sources.
void Machine::end_groups(int at) {
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  const Piece& code = program_.codes[static_cast<std::size_t>(w.code)];
  const int32_t read = w.elected[static_cast<std::size_t>(part(at, bulk_read))];
  if (!w.bulk_open && read >= w.bulk_groups) return;
  for (const Instruction& i : code.instructions) {
    const auto* issue = i.op != nullptr ? i.op->as<core::Issue>() : nullptr;
    const auto stores = [](const arch::Access& a) {
      return a.until == arch::Completion::bulk_group_read;
    };
    if (issue == nullptr || std::none_of(issue->form->effects.accesses.begin(),
                                         issue->form->effects.accesses.end(), stores))
      continue;
    return report("exit_order", at, i,
                  "a thread ends while its bulk store may still read shared memory",
                  "all its groups have read their sources",
                  w.bulk_open ? "a store that no group has"
                              : fmt::format("{} of {} groups are known to", read, w.bulk_groups),
                  "issue `bulk.wait_read` 0 in the thread that committed, before it ends");
  }
}

/// Four warps have issued the same instructions of a warpgroup.
void Machine::end_warpgroup(int first) {
  for (int at = first + 1; at < first + 4; ++at) {
    const Warp& a = state.warps[static_cast<std::size_t>(first)];
    const Warp& b = state.warps[static_cast<std::size_t>(at)];
    if (a.group_hash == b.group_hash) continue;
    const Piece& code = program_.codes[static_cast<std::size_t>(b.code)];
    for (const Instruction& i : code.instructions)
      if (i.op != nullptr && i.op->as<core::Issue>() != nullptr &&
          i.op->as<core::Issue>()->form->effects.issuer == Issuer::warpgroup) {
        report("uniformity", at, i, "the warps of a warpgroup issue different instructions",
               fmt::format("the {} of warp {}", a.group_count, first % warps_),
               fmt::format("{}", b.group_count), "let all four warps come to it");
        break;
      }
  }
}

}  // namespace tessera::check
