// What the checker finds in kernels.
#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0860", "check.deadlock", R"(Some threads of a kernel wait for ever.)",
     R"(A run of the kernel, for the numbers of turns that the message gives, comes to a point where nobody can go on. What they wait for does not come in any other order of events either.)",
     R"(Look at what has come to the barrier: too few arrivals, too few bytes, or a wait for the wrong parity.)",
     R"(
b.issue(mbarrier.init, empty, 1)     # where the warps of two warpgroups arrive: count them all
)"},
    {"TS0861", "check.phase_window",
     R"(A wait for a barrier's phase may take another phase for it.)",
     R"(A barrier tells one bit: whether its phase is odd. A wait is right only while the barrier is in the phase that is waited for or the one after. It may be overtaken where nothing keeps the next phase from completing, as with lanes that lag behind the elected one.)",
     R"(Let whoever waits take part in the next phase after it, or let the warp meet before its elected lane arrives.)",
     R"(
mbarrier.wait full[s]; warp.sync; elected: mbarrier.arrive empty[s]
)"},
    {"TS0862", "check.arrivals", R"(Arrivals or bytes of a barrier's phase do not add up.)",
     R"(A phase completes when as many arrivals have come as the barrier was initialized with, and as many bytes as were expected. A thread that comes without knowing that the last phase is complete may count for the last one.)",
     R"(Initialize with the number of arrivals a phase, expect the bytes of whole boxes, and wait before coming again.)",
     R"(
mbarrier.arrive_expect_tx full[s], (128 + 256) * 64 * 2     # both boxes of the stage
)"},
    {"TS0863", "check.race", R"(Two accesses of shared memory are not ordered.)",
     R"(One of them writes, and in some execution they happen at the same time, or in the other order. The label shows the earlier access.)",
     R"(Put a barrier between them: wait for the copy, or arrive after the read has ended.)",
     R"(
wgmma.wait 1; mbarrier.arrive empty[s - 1]     # not the other way round
)"},
    {"TS0864", "check.uninitialized", R"(Something is read that has not been written.)",
     R"(Shared memory or registers are read in some execution before anything writes them. A wgmma that accumulates reads its accumulators.)",
     R"(Write them first; let the first product of a sum overwrite its accumulators.)",
     R"(
accumulate = select(k == 0, 0, 1)
)"},
    {"TS0865", "check.proxy_fence",
     R"(A fence between the generic and the async proxy is missing.)",
     R"(Plain accesses and those of TMA and wgmma take different paths to shared memory; a barrier alone does not order them. The fence stands in each thread that made the plain access, before the barrier by which it hands over.)",
     R"(Issue `fence.async.shared::cta` after the access and before the barrier.)",
     R"(
stmatrix; fence.async.shared::cta; barrier.sync; tma.store
)"},
    {"TS0866", "check.async_registers",
     R"(Registers are touched while a wgmma uses them, or without a fence.)",
     R"(A wgmma reads and writes its registers until its group has been awaited. Other accesses of them need `wgmma.fence` before the next wgmma.)",
     R"(Wait for the group before touching its registers, and fence after.)",
     R"(
wgmma.commit; wgmma.wait 0; compute(acc)
)"},
    {"TS0867", "check.uniformity",
     R"(Not all threads come to an instruction that they execute together, or too many do.)",
     R"(An instruction of a warp or of a warpgroup needs all of its threads. One that acts once needs one thread.)",
     R"(Move it out of, or into, the elected part.)",
     R"(
elected: tma.load     # one lane; barrier.sync     # the whole warp
)"},
    {"TS0868", "check.barrier_init", R"(A barrier is used before its initialization is known.)",
     R"(The thread that initializes has to fence, and the block has to meet, before another thread or a copy uses the barrier.)",
     R"(Issue `fence.mbarrier_init` after the initializations and `barrier.sync` before the roles.)",
     R"(
elected: mbarrier.init; fence.mbarrier_init   then   barrier.sync 0, threads
)"},
    {"TS0869", "check.named_barriers", R"(Warps that meet at a named barrier do not agree.)",
     R"(All that come have to say the same number of threads, that of all who come, and must not come again before they have gone on.)",
     R"(Count the threads of all warps that come.)",
     R"(
barrier.sync 1, 128     # four warps
)"},
    {"TS0870", "check.exit_order",
     R"(A block may end while something still uses its shared memory.)",
     R"(A bulk store reads shared memory after the instruction, copies and arrivals of other blocks of the cluster come at any time; when the block has ended, another block gets that memory.)",
     R"(Let the thread that committed issue `bulk.wait_read` 0 before it ends, wait for every copy, and let a cluster meet before its blocks end, by `cluster.arrive`, which releases, and `cluster.wait`.)",
     R"(
elected: bulk.wait_read 0
)"},
    {"TS0871", "check.bounds", R"(An index leaves its storage or its tensor.)",
     R"(For the sizes in the message an index of shared memory, of barriers or of registers is not within its extent.)",
     R"(Take slots modulo their number, and keep loops within their extents.)",
     R"(
full[k % 4]
)"},
    {"TS0872", "check.cluster_barrier",
     R"(A warp does not come to the cluster's barrier and wait for it by turns.)",
     R"(The cluster's barrier counts the threads that come. A warp that comes twice without waiting, or waits without having come, takes another one's place.)",
     R"(Let every warp issue `cluster.arrive` and then `cluster.wait`, as often as all others.)",
     R"(
cluster.arrive
cluster.wait
)"},
    {"TS0873", "check.k_agreement",
     R"(A product multiplies elements of A and B that have different k, or are of different batches.)",
     R"(The matrices of a wgmma were traced through shared memory, swizzles and tensor maps to the tensors. At some step the two carry different indices of the dimension that is summed over, or a matrix reads bytes that none of its copies brings, or two of them.)",
     R"(Load both operands at the same k; let tensor map, shared memory and descriptor have the same swizzle.)",
     R"(
tma.load at (k * 64, row); tma.load at (k * 64, column)
)"},
    {"TS0874", "check.placement",
     R"(An element of the output gets the sum of another element, or another function of it.)",
     R"(The sums were traced from the accumulators through registers and shared memory to the output's coordinates. Some element of a tile has the sum of another row or column, another function of it than the meaning has, or elements of other tensors at other indices; or it is stored twice or not at all, or an access leaves its tensor.)",
     R"(Let the layout of the accumulators, the addresses of loads and stores, and the coordinates of copies agree. Bound loads and stores of registers by the extents of their tensor.)",
     R"(
tma.store at (column + c * 64, row + group * 64)
)"},
    {"TS0875", "check.reduction", R"(The sums do not have each k exactly once.)",
     R"(The first product of a tile has to overwrite and all others to add; the steps of a turn have to
     cover its part of k, and the turns all of k. Where accumulators begin anew on the way, they have
     to be added to other registers before, once.)",
     R"(Let accumulate be 0 in the first product of the first turn alone, or of each turn ahead of
     which the accumulators are added up, and round the number of turns up.)",
     R"(
accumulate = select(k == 0, 0, 1); for k in range(0, (K + 63) // 64)
)"},
    {"TS0876", "check.output_once", R"(Some tile of the output is written twice, or by no block.)",
     R"(Blocks and turns together have to count the tiles of the output one by one. The message has a small launch where they do not.)",
     R"(Let a block take the tiles block, block + blocks, block + 2 * blocks and so on below the number of tiles.)",
     R"(
turns = (tiles - block + blocks - 1) // blocks
)"},
    {"TS0878", "check.bad_meaning", R"(What a kernel says that it computes cannot be read.)",
     R"(`means` is an assignment to an element of a tensor for each output, with `;` between them: a function of a sum of products over one name, or of no sum, and of inputs' elements at the output's indices or numbers.)",
     R"(Write it in the form that the message shows, with tensors of the kernel.)",
     R"(
@kernel(means='C[i, j] = relu(sum(A[i, k] * B[j, k], k) * 0.5 + X[j])')
)"},
    {"TS0877", "check.alignment", R"(A part of shared memory starts at the wrong address.)",
     R"(A swizzle changes addresses by their own bits, so that what it is used with starts at a multiple of its period: 1024 bytes for the one of 128 bytes. Barriers start at multiples of 8 bytes.)",
     R"(Move it to the next multiple, or let the builder place it.)",
     R"(
a = shared(bf16, (4,128,64):(8192,64,1), swizzle=128, at=1024)
)"},
    {"TS0886", "check.tags", R"(An assertion about tags does not hold.)",
     R"(What the element carries was followed from the tensors that are tagged, through copies, shared memory, products and
     registers, for all sizes. Where several elements are computed together, a tag that they do not share becomes several
     values, which no assertion agrees with; what nothing tags carries nothing, and that agrees with nothing either. The
     labels show where the element comes from.)",
     R"(Mend the copy, the slot or the index that brings the wrong element; or tag the tensor that it comes from; or reset a
     tag that a sum over all elements would mix in.)",
     R"(
tag(A, k=lambda i, k: k)
tag(B, k=lambda j, k: k)
assert_same(a[k], b[k], "k", axis=1)
)"},
    {"TS0889", "check.early_access",
     R"(A kernel that may start early touches global memory before it has waited.)",
     R"(A kernel with `grid.wait` is launched so that it starts while the grids before it in the stream still run. Until the wait returns they may write what this kernel reads, and read what it writes.)",
     R"(Let all threads issue `grid.wait` at the kernel's beginning, before the roles; or leave it out, then the kernel starts when those before it have ended.)",
     R"(
grid.wait()
with role("producer", warpgroups=1): tma.load(...)
)"},
    {"TS0879", "check.resources", R"(A block does not fit a multiprocessor.)",
     R"(Its threads, its shared memory, or the registers that its roles claim are more than the architecture has.)",
     R"(Take fewer stages, smaller tiles, or fewer registers for a role.)",
     R"(
two roles of 128 threads with 240 registers and one with 40: 66560 of 65536
)"},
    {"TS0882", "check.mask", R"(A mask of scores hides other keys than the meaning.)",
     R"(For a row and a key of a tile, the conditions under which the score becomes -inf were compared with those under which the meaning does not see the key: past the end of the keys, or past what `where` in `softmax` says. A branch around a mask counts with it. The message has a small launch where they differ; or a masked score is finite, or what lies beyond the values is multiplied by 0 and is not finite.)",
     R"(Compare the key's place with the end by `<=`, take first places of the tile that the turn is of, and skip a mask only where it hides nothing of all rows.)",
     R"(
scores[:] = where(TK <= key or query + TK - TQ < key, -inf, scores)
)"},
    {"TS0883", "check.rescale",
     R"(Sums of powers are added that have had different scores taken off.)",
     R"(A softmax whose keys come in turns takes off the greatest score so far. When a greater one comes, what was summed before has to be multiplied by 2^(before - now), once: the sum of the powers, and the sums over the values alike.)",
     R"(Multiply each accumulator by the factor of the turn before anything of the turn is added.)",
     R"(
total[:] = total * factor + lane_sum(scores, axis=1); sums *= factor
)"},
    {"TS0884", "check.dominance",
     R"(A power is taken of a score from which no greater score is taken off.)",
     R"(exp of a score overflows unless the greatest is taken off: of the same row, times the same scale, and with this score among those that it is the greatest of.)",
     R"(Take the maximum of the scores before and of this turn, and subtract it.)",
     R"(
most[:] = max(most, amax(scores, axis=1))
)"},
    {"TS0885", "check.degenerate",
     R"(Where no key has been seen yet, a kernel of attention computes nothing or NaN.)",
     R"(The loop over keys has to turn once at least, and a row whose keys are all masked so far has -inf as its greatest score: -inf - -inf is NaN, which later keys do not mend.)",
     R"(Take off 0 where the greatest score is -inf, and let the loop turn once.)",
     R"(
shift[:] = where(most == -inf, 0.0, most)
)"},
};

}  // namespace

std::span<const Explanation> explained_check() {
  return records;
}

}  // namespace tessera
