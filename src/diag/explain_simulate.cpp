#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0840", "simulate.race",
     R"(Two accesses of the same bytes, one of them a write, are in no order.)",
     R"(Nothing makes the second wait until the first is over: no barrier, no wait for the copy or the
     product. In another schedule they happen at a time, and the value is one or the other.)",
     R"(Wait for the first access where the second one is made: for the mbarrier that counts a load's
     bytes, for the group of a store or a product, at a barrier for other threads.)",
     R"(
error[TS0840]: `tma.load` writes `a[0, 8, 0]` while it may still be read
     # the stage was released before `wgmma.wait`
)"},
    {"TS0841", "simulate.no_proxy_fence",
     R"(Bytes that ordinary instructions touched are used by TMA or wgmma without a fence between the two paths to memory.)",
     R"(Loads and stores of threads use the generic proxy; TMA, bulk copies and wgmma the async proxy. A
     barrier does not order accesses of two proxies. For an mbarrier's initialization the fence is
     `fence.mbarrier_init`.)",
     R"(Let the threads that made the first accesses execute `fence.async.shared::cta` before the barrier that
     hands over to the thread that issues the copy.)",
     R"(
stmatrix
fence.async.shared::cta     # this line was missing
barrier.sync
tma.store
)"},
    {"TS0842", "simulate.uninitialized", R"(A value is read that nobody has written.)",
     R"(The bytes of memory, or the registers, have no value at the time of the read: what fills them is not
     waited for, comes later, or goes elsewhere.)",
     R"(Wait for what fills them. The first product of a sum takes accumulate = 0.)",
     R"(
error[TS0842]: element 0 of registers `acc` is read before it has a value
)"},
    {"TS0843", "simulate.bad_access",
     R"(An access leaves its storage, or its address or operand is not legal.)",
     R"(A coordinate is outside of its extent, bytes are past the end, an address is not aligned as the
     instruction wants it, or a number is outside of an operand's range.)",
     R"(Bound the access, or mend the index.)",
     R"(
error[TS0843]: coordinate 0 of `C` is 64     # C has 64 rows: 0 to 63
)"},
    {"TS0844", "simulate.stuck", R"(The kernel cannot go on.)",
     R"(Every thread that has not ended waits for something that no one will do: a phase of an mbarrier whose
     arrivals or bytes do not come, a barrier to which too few threads come, lanes that went another way.
     The notes say who waits for what.)",
     R"(See who should signal what the first one waits for; count the arrivals of a phase.)",
     R"(
error[TS0844]: nothing can go on: 9 wait
  note: block 0, warp 0 (producer), lane 0, turn = 0, k = 0 waits for phase 0 of `empty[0]`, which
        lacks 4 of 4 arrivals and 0 bytes
)"},
    {"TS0887", "simulate.bad_tag", R"(An element carries another tag than its author asserts.)",
     R"(In this run the element came from somewhere else, or nothing has tagged what it came from. The message has the
     place, the value that is asserted and the one that is there.)",
     R"(Follow the element back to the copy that brought it: its coordinates, its slot, or the wait before it is wrong. Or the
     assertion means another element.)",
     R"(
assert_same(a[k], b[k - 1], "k", axis=1)     # b of the turn before
)"},
    {"TS0845", "simulate.bad_barrier", R"(A barrier is used against its rules.)",
     R"(More threads arrive than a phase has arrivals; bytes come that the phase did not expect; a wait comes
     two phases late, so that one bit of parity cannot tell them apart; a named barrier is told two
     numbers of threads.)",
     R"(Count arrivals and bytes of each phase, and let later phases depend on those who wait.)",
     R"(
error[TS0845]: 4096 bytes come to `full[0]` after the phase in which `tma.load` was issued
     # the producer arrived without expecting the bytes
)"},
    {"TS0846", "simulate.registers_in_flight",
     R"(Registers are touched while a wgmma uses them, or go into one without a fence.)",
     R"(A wgmma reads and writes its registers until its group is complete. Registers that the threads wrote
     or read before go into a wgmma only after `wgmma.fence`.)",
     R"(Commit the products and wait for the group before the registers are used; put `wgmma.fence` before the
     products.)",
     R"(
error[TS0846]: element 0 of registers `acc` is read while a wgmma uses it
)"},
    {"TS0847", "simulate.bad_output",
     R"(An output's element is written twice or never, or an input is written.)",
     R"(Two tiles overlap, a tile is taken by nobody or by two blocks, or a store is bounded wrongly.)",
     R"(See which tiles the blocks take.)",
     R"(
error[TS0847]: 64 of 4096 elements of output `C` are never written
)"},
    {"TS0848", "simulate.early_exit", R"(A block ends while its shared memory is still in use.)",
     R"(A bulk store still reads it, a load still fills it, or another block of the cluster still reaches into
     it, and no thread of the block has waited for that.)",
     R"(Wait before the end: `bulk.wait_read 0` in the thread that issued the stores, the cluster's barrier for
     other blocks.)",
     R"(
error[TS0848]: block 0 ends while `tma.store` of C_map, c may still use its shared memory
)"},
    {"TS0849", "simulate.not_executable",
     R"(The kernel cannot be run in the interpreter with this launch.)",
     R"(A parameter or an input is missing or has the wrong size, the grid is empty, or an instruction has no
     meaning there.)",
     R"(Give every parameter and input of the kernel.)",
     R"(
error[TS0849]: parameter `K` of kernel `gemm` has no value
)"},
};

}  // namespace

std::span<const Explanation> explained_simulate() {
  return records;
}

}  // namespace tessera
