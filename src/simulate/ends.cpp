// How a run ends: blocks that end, strands that cannot go on, outputs that nobody wrote.
#include <algorithm>

#include "base/text.h"

#include "simulate/machine.h"

namespace tessera::simulate {

using arch::EventKind;

/// What asynchronous operations and other blocks do to the block's shared memory is over, and a
/// thread of the block knows so.
void Machine::end_block(int block) {
  Block& b = blocks_[block];
  b.ended = true;
  for (const auto& [who, last] : b.use) {
    const auto& [component, party] = who;
    if (b.last.seen[component] >= last.clock) continue;
    if (party != Mark::nobody && b.last.seen[party] >= last.by_clock) continue;
    report(
        fail(early_exit, "block {} ends while {} may still use its shared memory", block,
             what(last.event))
            .expect("a wait, in the block, for that to be over")
            .help("before the block ends, wait for its bulk stores (bulk.wait_read 0), loads and "
                  "wgmma's, and meet with the cluster's blocks that reach into it"),
        last.event);
  }
}

std::string Machine::waits_for(const Strand& s) const {
  if (s.status == Strand::Status::meeting) return "its warp's other lanes";
  const Call& call = *s.next;
  for (const EventCode& e : call.code->events) {
    const int lane = first_lane(s.mask);
    if (e.effect->kind == EventKind::phase) {
      const int64_t slot = call.given[e.operand](lane);
      const Barrier& b = blocks_[call.block].barriers[slot];
      return fmt::format("phase {} of {}, which lacks {} of {} arrivals and {} bytes",
                         intended_phase(s.knows, b, call.given[e.amount](lane)),
                         barrier_text(call.block, slot), b.pending, b.count, b.bytes);
    }
    if (e.effect->kind == EventKind::named_barrier) {
      const int64_t id = call.given[e.operand](lane);
      const Named& n = blocks_[call.block].named[id];
      return fmt::format("named barrier {}, to which {} of {} threads have come", id, n.arrived,
                         n.expected);
    }
    if (e.effect->kind == EventKind::cluster_barrier) return "the cluster's barrier";
    if (e.effect->kind == EventKind::register_pool)
      return fmt::format("{} registers a thread, where the block's pool has {} in all",
                         amount(call, e), blocks_[call.block].pool);
  }
  return "`" + call.code->form->name + "`";
}

void Machine::say_stuck() {
  std::vector<std::string> notes;
  std::optional<uint32_t> event;
  for (const Strand& s : strands_) {
    if (s.status == Strand::Status::gone || s.status == Strand::Status::moving) continue;
    const uint32_t here = s.next ? s.next->event : log(s);
    if (!event || s.status == Strand::Status::ready) event = here;
    notes.push_back(fmt::format("{} waits for {}", who(here), waits_for(s)));
  }
  if (!event) event = log(strands_.front());
  Diagnostic d = out_.steps > Simulator::most_steps
                     ? fail(stuck, "the kernel does not end within {} steps", Simulator::most_steps)
                           .help("see that its loops end")
                     : fail(stuck, "nothing can go on: {} wait", notes.size())
                           .expect("every thread ends")
                           .help("see who should signal what the first one waits for");
  constexpr std::size_t most = 12;
  if (notes.size() > most) {
    notes.resize(most);
    notes.emplace_back("and others");
  }
  d.notes = std::move(notes);
  report_and_end(std::move(d), *event);
}

/// Nobody can take a step.
void Machine::end_run() {
  for (const Strand& s : strands_)
    if (s.status != Strand::Status::gone) say_stuck();
  for (std::size_t block = 0; block < blocks_.size(); ++block)
    for (std::size_t i = 0; i < blocks_[block].barriers.size(); ++i) {
      const Barrier& b = blocks_[block].barriers[i];
      if (!b.live || b.bytes == 0) continue;
      report(fail(bad_barrier, "the kernel ends while {} expects {} bytes",
                  barrier_text(static_cast<int>(block), static_cast<int64_t>(i)), b.bytes)
                 .expect("as many bytes as come")
                 .help("expect the bytes of the copies that are issued, no more and no less"),
             b.made.event);
    }
  if (!out_.findings.empty()) return;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const core::Tensor& tensor = program_.kernel.tensors[t];
    const TensorCode& code = program_.tensors[t];
    if (tensor.access != core::Access::output) continue;
    const int64_t size = size_of(tensor.element);
    int64_t total = 1, missing = 0;
    std::string first;
    for (int64_t extent : code.extents) total *= extent;
    for (int64_t i = 0; i < total; ++i) {
      int64_t element = 0, rest = i;
      std::vector<std::string> place(code.extents.size());
      for (std::size_t d = code.extents.size(); d-- > 0; rest /= code.extents[d]) {
        element += rest % code.extents[d] * code.strides[d];
        if (missing == 0) place[d] = std::to_string(rest % code.extents[d]);
      }
      if (tensors_[t].shadow.written(element * size)) continue;
      if (missing++ == 0) first = join(place, ", ");
    }
    if (missing == 0) continue;
    Diagnostic d = fail(bad_output, "{} of {} elements of output `{}` are never written", missing,
                        total, tensor.name)
                       .but_found("`{}[{}]` is the first", tensor.name, first)
                       .help("see which tiles the blocks take, and where their stores are bounded");
    if (events_.empty())
      keep(std::move(d));  // nothing was done, so there is no place to show
    else
      report(std::move(d), static_cast<uint32_t>(events_.size()) - 1);
  }
}

}  // namespace tessera::simulate
