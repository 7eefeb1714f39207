// What the blocks of a cluster do to each other: copies to several of them, arrivals at another
// one's barriers, and the barrier of them all.
#include "base/text.h"

#include "check/machine.h"

namespace tessera::check {

/// The blocks whose bit is set in an operand; the warp's own where there is no such operand.
void Machine::targets(int at, const Instruction& i, std::string_view blocks,
                      std::vector<int>& out) {
  out.clear();
  if (blocks.empty()) return out.push_back(block_of(at));
  const int64_t mask =
      amount(state.warps[static_cast<std::size_t>(at)], i, arch::Amount::operand(blocks));
  for (int b = 0; b < blocks_; ++b)
    if ((mask >> b & 1) != 0) out.push_back(b);
  if (mask >> blocks_ != 0)
    report("bounds", at, i, "a copy goes to a block that the cluster does not have",
           fmt::format("bits 0 to {}", blocks_ - 1), fmt::format("a mask of {:#b}", mask),
           "set a bit for each block of the cluster that gets the copy");
}

/// The block whose barrier an event is of; -1 where the cluster has no such block.
int Machine::target(int at, const Instruction& i, const arch::Event& e) {
  if (e.block.empty()) return block_of(at);
  const int64_t rank =
      amount(state.warps[static_cast<std::size_t>(at)], i, arch::Amount::operand(e.block));
  if (rank >= 0 && rank < blocks_) return static_cast<int>(rank);
  report("bounds", at, i, "an arrival is for a block that the cluster does not have",
         fmt::format("0 to {}", blocks_ - 1), std::to_string(rank),
         "name a block by its rank in the cluster");
  return -1;
}

/// Something comes to a block's shared memory.
void Machine::reach(int at, const Instruction& i, int block) {
  if (state.running[static_cast<std::size_t>(block)] > 0) return;
  report("exit_order", at, i, "another block may have ended that this acts on",
         fmt::format("block {} of the cluster ends after this in every execution", block),
         "it ends without waiting for it",
         "let the cluster meet (`cluster.arrive`, `cluster.wait`) before its blocks end");
}

/// Another block's arrival at a barrier.
void Machine::use(int at, const Instruction& i, int b) {
  const Warp& w = state.warps[static_cast<std::size_t>(at)];
  Barrier& bar = state.barriers[static_cast<std::size_t>(b)];
  std::erase_if(bar.uses, [&](const Use& u) { return u.warp == at; });
  bar.uses.push_back({at, i.op, w.elected_index, i.elected ? 0 : w.others_index, bar.phase});
}

void Machine::come_to_cluster(int at, const Instruction& i, const arch::Event& e) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  Named& all = state.cluster;
  if (w.cluster_come)
    report("cluster_barrier", at, i, "a warp comes to the cluster's barrier twice without waiting",
           "`cluster.wait` between two `cluster.arrive`", "none",
           "wait for each turn of the cluster's barrier before coming to the next");
  w.cluster_come = true;
  w.cluster_generation = all.generation;
  const bool releases = e.order == arch::Ordering::release || e.order == arch::Ordering::both;
  learn(all.coming, w.elected, releases);
  learn(all.coming, w.others, releases);
  if (++all.come < warps()) return;
  all.done = all.coming;
  all.coming.assign(all.coming.size(), 0);
  all.come = 0;
  ++all.generation;
}

void Machine::wait_for_cluster(int at, const Instruction& i) {
  Warp& w = state.warps[static_cast<std::size_t>(at)];
  if (!w.cluster_come)
    return report("cluster_barrier", at, i,
                  "a warp waits at the cluster's barrier without having come",
                  "`cluster.arrive` before each `cluster.wait`", "none",
                  "come to the cluster's barrier before waiting for it");
  w.cluster_come = false;
  learn(w.elected, state.cluster.done);
  learn(w.others, state.cluster.done);
}

}  // namespace tessera::check
