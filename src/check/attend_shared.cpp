// What warps leave in shared memory on its way to the output, and what else is written there.
#include <algorithm>

#include "check/attend_walk.h"

namespace tessera::check {
namespace {

bool overlap(const core::Shared& a, const core::Shared& b) {
  return a.at < b.at + b.bytes() && b.at < a.at + a.bytes();
}

/// Where results are put, or taken from, on their way.
const core::SharedAt* of_results(const core::Issue& issue) {
  const std::string& name = issue.form->name;
  if (name.starts_with("stmatrix")) return argument<core::SharedAt>(issue, "to");
  if (name.starts_with("tma.store")) return argument<core::SharedAt>(issue, "from");
  return nullptr;
}

}  // namespace

/// An op of the warp writes 16 bits. A warp's own writes come in the order of the text. Of those of
/// two warps the runs know which a read may see.
void AttendWalk::keep(const core::Op& op, int warp, int64_t byte, const Cell& cell) {
  Kept& at = state_.shared[static_cast<std::size_t>(byte / 2)];
  const bool by_another = at.writer.op != nullptr && at.writer.warp != warp;
  if (by_another && at.overwritten != nullptr && at.overwritten != at.writer.op) {
    give_up("several warps write to one place of the results");
    return;
  }
  if (by_another) at.overwritten = at.writer.op;
  if (at.reader.op != nullptr &&
      (at.many_readers || (at.reader.warp != warp && products_.sees(at.reader.op, &op)))) {
    give_up("a place of the results is written anew where another warp may still read it");
    return;
  }
  at.cell = cell;
  at.writer = {&op, warp};
}

/// What an op of the warp reads.
const AttendWalk::Cell& AttendWalk::taken(const core::Op& op, int warp, std::size_t half) {
  static const Cell nothing;
  if (half >= state_.shared.size()) return nothing;
  Kept& at = state_.shared[half];
  if (at.overwritten != nullptr && products_.sees(&op, at.overwritten)) {
    give_up("two warps write to one place of the results, in an order that is not followed");
    return nothing;
  }
  at.many_readers = at.many_readers ||
                    (at.reader.op != nullptr && (at.reader.op != &op || at.reader.warp != warp));
  at.reader = {&op, warp};
  return at.cell;
}

/// Whether the op writes to no memory but such as has nothing to do with results.
bool AttendWalk::leaves_results(const core::Issue& issue) {
  for (const arch::Access& a : issue.form->effects.accesses) {
    if (a.space == arch::Space::registers || a.action == arch::Action::read) continue;
    if (argument<core::BarrierAt>(issue, a.operand) != nullptr) continue;
    const auto* to = argument<core::SharedAt>(issue, a.operand);
    if (a.space != arch::Space::shared || to == nullptr) return false;
    for (const Place& p : products_.places()) {
      const auto* results = p.op->as<core::Issue>() == nullptr ? nullptr : of_results(p.issue());
      if (results != nullptr && overlap(kernel_[to->shared], kernel_[results->shared]))
        return false;
    }
  }
  return true;
}

}  // namespace tessera::check
