"""C = A B^T for float32 elements, at the accuracy of float32, by tensor cores that see 11 bits of an element (tf32).

An element is x = high + low: `high` is the nearest number of 11 bits, `low` the rest, whose first 11 bits the tensor
cores see. So x y is high high' + high low' + low high', and what is left out, low low', is at most 2^-22 of it.

One warpgroup loads tiles of A and B by TMA into a ring of STAGES slots of 32 along k. Another takes B apart, and writes
the high parts and the low parts side by side. Two others make 64 rows each: they read B's parts from shared memory, and of
A each takes apart in registers what its own products take. A slot has two halves of 16 along k, and while the tensor cores
multiply one, the threads are at the next.

The tensor cores cut what they add up, 48 times in 128 of k, which makes a sum of positive products 1e-6 too low. So
they sum PROMOTE slots at a time, and float32 registers add up these sums.

The blocks are persistent, and results leave from registers, through `epilogue`. A block is alone: those of a cluster
would have to tell each other what their threads, not only TMA and wgmma, have read.

The kernel may start while the one before it still runs: it sets up its barriers, and waits before it touches a tensor.
"""

from __future__ import annotations

from tessera.language import *


def plain(x, batch, m, n):
    """The sums themselves. x is a part of a tile; batch, m and n are where it lies in C."""
    return x


@kernel(means="C[b, i, j] = sum(A[b, i, k] * B[b, j, k], k)")
def gemm(
    M: index(multiple=M_MULTIPLE, below=1 << (19 if BATCHES == 1 else 20)),
    N: index(multiple=N_MULTIPLE, below=1 << (19 if BATCHES == 1 else 20)),
    K: index(multiple=K_MULTIPLE, below=1 << (19 if BATCHES == 1 else 20)),
    L: index(below=1 << 16),  # batches
    A_STRIDE: index(multiple=4),
    A_BATCH: index(multiple=4, below=1 << 38),
    B_STRIDE: index(multiple=4),
    B_BATCH: index(multiple=4, below=1 << 38),
    C_STRIDE: index(multiple=C_MULTIPLE),
    C_BATCH: index(multiple=C_MULTIPLE, below=1 << 38),
    A: Tensor[
        f32,
        "L" if A_BATCHES == 1 else None,
        "M",
        "K",
        strides("A_BATCH", "A_STRIDE", 1)
        if A_ORDER == 1
        else strides("A_BATCH", 1, "A_STRIDE")
        if A_ORDER == 2
        else strides(),
    ],
    B: Tensor[
        f32,
        "L" if B_BATCHES == 1 else None,
        "N",
        "K",
        strides("B_BATCH", "B_STRIDE", 1)
        if B_ORDER == 1
        else strides("B_BATCH", 1, "B_STRIDE")
        if B_ORDER == 2
        else strides(),
    ],
    C: Tensor[
        RESULT,
        "L" if BATCHES == 1 else None,
        "M",
        "N",
        strides("C_BATCH", "C_STRIDE", 1) if C_ORDER == 1 else strides(),
        out,
    ],
    RESULT: const = f32,
    BN: const = 128,  # columns of a tile: a multiple of 32, 64 to 128
    STAGES: const = 3,  # slots of the ring
    GROUP: const = 8,  # tiles of rows that are taken side by side, for the cache
    BATCHES: const = 0,  # 1: C has L matrices; 0: it is one
    A_BATCHES: const = 0,  # 1: A has one for each batch; 0: one for all
    B_BATCHES: const = 0,
    A_ORDER: const = 0,  # how A lies: 0: rows without gaps; 1: rows, 2: columns, A_STRIDE elements apart
    B_ORDER: const = 0,
    C_ORDER: const = 0,  # 0 or 1
    M_MULTIPLE: const = 4,  # what is known of M, N and K. Strides in bytes have to be multiples of 16
    N_MULTIPLE: const = 4,
    K_MULTIPLE: const = 4,
    C_MULTIPLE: const = 4,  # of C's strides
    PART: const = 32,  # columns that leave at a time
    PROMOTE: const = 4,  # slots that the tensor cores sum before float32 takes over
    DIVIDER: const = 72,  # registers of a thread that takes B apart
    epilogue: fn = plain,
):
    assert BATCHES == 1 or A_BATCHES + B_BATCHES == 0, "C has a matrix for each batch"
    assert BN % 32 == 0 and BN % PART == 0 and BN <= 128, "a thread has no registers for wider tiles"
    assert PROMOTE > 0, "float32 adds up what the tensor cores sum"

    a = shared(f32, [STAGES, 128, 32], swizzle=128, contiguous=1 if A_ORDER == 2 else 2)
    # Threads read columns of B as they lie, row after row, and take a row's neighbours from different banks.
    b = shared(f32, [STAGES, BN, 32], swizzle=0 if B_ORDER == 2 else 128, contiguous=1 if B_ORDER == 2 else 2)
    # B's parts: of each half of a slot, in each row the high parts and behind them the low ones.
    taken_apart = shared(f32, [STAGES, 2, BN, 32], swizzle=128)
    high, low = part(0, 16), part(1, 16)
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=12, starts_complete=True)  # one of each warp that reads what is loaded
    # Of each half of a slot: one of each warp that takes B apart, and one of each consumer warp.
    made = [barrier(STAGES, arrivals=4), barrier(STAGES, arrivals=4)]
    used = [
        barrier(STAGES, arrivals=8, starts_complete=True),
        barrier(STAGES, arrivals=8, starts_complete=True),
    ]
    steps = ring(K, 32, STAGES)
    work = tiles(L if BATCHES == 1 else 1, 1, M, 128, N, BN, group=GROUP, even=True)

    grid.wait()  # what follows touches tensors, which the kernel before this one may still write
    grid.launch()

    with role("producer", warpgroups=1, registers=40), one_thread():
        for batch, m, n in work:
            for k in steps:
                empty[k].wait()
                full[k].expect(a[k], b[k])
                tma.load(A[batch.index, m, k], a[k], full[k])
                tma.load(B[batch.index, n, k], b[k], full[k])

    with role("divider", warpgroups=1, registers=DIVIDER):
        for batch, m, n in work:
            for k in steps:
                full[k].wait()
                for h in static_range(2):
                    used[h][k].wait()
                    take_apart(b[k, :, part(h, 16)], taken_apart[k, h][:, high], taken_apart[k, h][:, low])
                    fence.async_shared()
                    made[h][k].arrive()
                empty[k].arrive()

    with role("consumer", warpgroups=2, registers="rest"):
        sums = registers(f32, [128, BN], layout="wgmma")
        total = registers(f32, [128, BN], layout="wgmma")
        # Of each half of a slot: the products of one are under way while the other is made.
        a_high = [registers(f32, [128, 16], layout="wgmma_a"), registers(f32, [128, 16], layout="wgmma_a")]
        a_low = [registers(f32, [128, 16], layout="wgmma_a"), registers(f32, [128, 16], layout="wgmma_a")]
        for batch, m, n in work:
            total[:] = 0.0
            for k in steps:
                full[k].wait()
                for h in static_range(2):
                    x = load(a[k, :, part(h, 16)], like=a_high[h])
                    wgmma.wait(1)  # the products of two halves ago are complete: their operands are free
                    if k.index > 0:
                        used[h][k - 1].arrive()
                    a_high[h][:] = round_tf32_finite(x)
                    a_low[h][:] = x - a_high[h]
                    begins = k.first or k.count % PROMOTE == 0 if h == 0 else False
                    if h == 0 and k.index > 0 and k.count % PROMOTE == 0:
                        wgmma.wait(0)
                        total[:] = total + sums
                    if h == 1:
                        fence.async_shared()  # a's slot is TMA's again
                        empty[k].arrive()
                    made[h][k].wait()
                    parts_of_b = taken_apart[k, h]
                    wgmma.fence()
                    wgmma(a_low[h], parts_of_b[:, high].T, sums, start=begins)
                    wgmma(a_high[h], parts_of_b[:, low].T, sums)
                    wgmma(a_high[h], parts_of_b[:, high].T, sums)
                    wgmma.commit()
            wgmma.wait(0)
            for h in static_range(2):
                used[h][steps.last].arrive()
            total[:] = total + sums
            for c in parts(BN, PART):
                store(epilogue(total[:, c], batch, m, n[c]), C[batch.index, m, n[c]])


def take_apart(matrix, to_high, to_low):
    """A matrix of shared memory, into its high and its low parts."""
    x = load(matrix)
    high = registers(f32, x.shape, like=x)
    high[:] = round_tf32_finite(x)
    store(high, to_high)
    store(x - high, to_low)
