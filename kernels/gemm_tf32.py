"""C = A B^T for float32 elements as the tensor cores see them (tf32), where A lies column by column.

wgmma reads 4-byte elements of shared memory along k only, so A comes through registers: threads load their parts of a
tile's columns from shared memory, and the tensor cores take them from there. B lies along k, and they read it themselves.
A product whose B lies column by column is this one turned: C^T = B A^T, and C lies column by column then.

One warpgroup loads tiles of A and B by TMA into a ring of STAGES slots of 32 along k. The others make 64 rows each. A slot
has two halves: while the tensor cores multiply one, the threads load their elements of the next.

Panels of A in shared memory are 32 rows wide: whole lines of the cache. Lanes that load 8 rows of 4 columns meet in a bank
twice; of panels of 8 rows they would not, and the cache would serve four times as many requests (bench/notes.md).

The blocks are persistent, and results leave through `epilogue`, PART columns at a time, through shared memory and TMA, or
from registers. Of two roles of consumers each takes every second tile: while one multiplies, the other's results leave.

The blocks of a cluster work on tiles one above the other. B, which all of them need, each loads in part for all. A block
ends when the others have left its ring.

The kernel may start while the one before it still runs: it sets up its barriers, and waits before it touches a tensor.
"""

from __future__ import annotations

from tessera.language import *


def plain(x, batch, m, n):
    """The sums themselves. x is a part of a tile; batch, m and n are where it lies in C."""
    return x


@kernel(cluster="CLUSTER", means="C[b, i, j] = sum(A[b, i, k] * B[b, j, k], k)")
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
    A: Tensor[f32, "L" if A_BATCHES == 1 else None, "M", "K", strides("A_BATCH", 1, "A_STRIDE")],
    B: Tensor[f32, "L" if B_BATCHES == 1 else None, "N", "K", strides("B_BATCH", "B_STRIDE", 1)],
    C: Tensor[
        RESULT,
        "L" if BATCHES == 1 else None,
        "M",
        "N",
        strides("C_BATCH", "C_STRIDE", 1) if C_ORDER == 1 else strides("C_BATCH", 1, "C_STRIDE"),
        out,
    ],
    RESULT: const = f32,
    BM: const = 128,  # rows of a tile
    ROWS: const = 64,  # of them each consumer warpgroup makes: 64, or 128, which takes twice the registers
    BN: const = 256,  # columns of a tile
    STAGES: const = 4,  # slots of the ring
    GROUP: const = 8,  # tiles of rows that are taken side by side, for the cache
    CLUSTER: const = 1,  # blocks of a cluster, one above the other
    BATCHES: const = 0,  # 1: C has L matrices; 0: it is one
    A_BATCHES: const = 0,  # 1: A has one for each batch; 0: one for all
    B_BATCHES: const = 0,
    C_ORDER: const = 2,  # how C lies: 1: rows, 2: columns, C_STRIDE elements apart
    M_MULTIPLE: const = 4,  # what is known of M, N and K. Strides in bytes have to be multiples of 16
    N_MULTIPLE: const = 4,
    K_MULTIPLE: const = 4,
    C_MULTIPLE: const = 4,  # of C's strides
    PART: const = 32,  # columns that leave at a time
    TURNS: const = 1,  # roles of consumers that take tiles by turns: 1 or 2
    DIRECT: const = 1,  # 1: results leave from registers; 0: by TMA, of 32 bits
    epilogue: fn = plain,
):
    assert BATCHES == 1 or A_BATCHES + B_BATCHES == 0, "C has a matrix for each batch"
    assert BM % ROWS == 0 and (ROWS == 64 or ROWS == 128), "a consumer warpgroup makes 64 rows, or 128"
    assert BN % PART == 0 and BN <= 256, "results leave PART columns at a time, and wgmma makes at most 256"
    assert TURNS == 1 or TURNS == 2, "tiles are taken by one role of consumers, or by two"

    groups = BM // ROWS  # consumer warpgroups of a role
    high = groups * 64  # rows of a tile that they make at a time
    a = shared(f32, [STAGES, BM, 32], swizzle=128, contiguous=1)
    b = shared(f32, [STAGES, BN, 32], swizzle=128)
    if DIRECT == 0:
        # Two per consumer warpgroup, which lie as C does.
        staging = shared(RESULT, [TURNS * groups, 2, 64, PART], swizzle=128, contiguous=3 if C_ORDER == 1 else 2)
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=groups * 4 * CLUSTER, starts_complete=True)  # one of each warp of a role
    if TURNS == 2:
        multiplied = barrier(2, arrivals=groups * 4)  # a role has seen all that is loaded for its tile
    steps = ring(K, 32, STAGES)
    work = tiles(L if BATCHES == 1 else 1, 1, M, BM, N, BN, group=GROUP, even=True, cluster="rows", stages=2)

    grid.wait()  # what follows touches tensors, which the kernel before this one may still write
    grid.launch()

    with role("producer", warpgroups=1, registers=40):
        with one_thread():
            for batch, m, n in work:
                for k in steps:
                    empty[k].wait()
                    full[k].expect(a[k], b[k])
                    tma.load(A[batch.index, m, k], a[k], full[k], round=True)
                    tma.load(B[batch.index, n, k], b[k], full[k], share=True, round=True)
            if CLUSTER > 1:
                for k in next_turns(steps, work):
                    empty[k].wait()  # the block stays until the cluster's consumers have left its slots

    for w in static_range(TURNS):
        with role("consumer" if TURNS == 1 else ["first", "second"][w], warpgroups=groups, registers="rest"):
            acc = registers(f32, [high, BN], layout="wgmma")
            sums = [acc, registers(f32, [high, BN], layout="wgmma")] if ROWS == 128 else [acc]
            # Of each half of a slot: the products of one are under way while the other is loaded.
            taken = [elements(high, ROWS // 64), elements(high, ROWS // 64)]
            if DIRECT == 0:
                result = registers(RESULT, [high, PART])
                buffers = warpgroup if w == 0 else warpgroup + groups
            for batch, m, n in work:
                if TURNS == 1 or work.turn.index % 2 == w:
                    # A waiter that skipped a phase of `full` cannot tell it from the one two later: their parity is equal.
                    if TURNS == 2 and work.turn.index > 0:
                        multiplied[work.turn - 1].wait()
                    for k in steps:
                        full[k].wait()
                        for h in static_range(2):
                            half = part(h, 16)
                            for u in static_range(ROWS // 64):
                                taken[h][u][:] = load(a[k, part(u, high), half], like=taken[h][u])
                            if h == 1:
                                fence.async_shared()  # TMA will write where the threads have read
                            wgmma.fence()
                            for u in static_range(ROWS // 64):
                                wgmma(taken[h][u], b[k, :, half].T, sums[u], start=k.first if h == 0 else False)
                            wgmma.commit()
                            wgmma.wait(1)  # the products of the half before are complete: its registers are free
                            if h == 0 and k.index > 0:
                                empty[k - 1].arrive(cluster=True, release=True)
                    if TURNS == 2:
                        multiplied[work.turn].arrive()
                    wgmma.wait(0)
                    empty[steps.last].arrive(cluster=True, release=True)
                    for u in static_range(ROWS // 64):
                        rows = m[part(u, high)]
                        for c in parts(BN, PART):
                            x = epilogue(sums[u][:, c], batch, rows, n[c])
                            to = C[batch.index, rows, n[c]]
                            if DIRECT == 1:
                                store(x, to)
                            else:
                                store_part(x, result, staging[buffers, c.index % 2], to, c.first)
            if DIRECT == 0:
                with one_thread("warpgroup"):
                    bulk.wait_read(0)  # shared memory has to stay until the last stores have read it


def elements(high, count):
    """Of A, for half a slot: `high` rows, once or twice."""
    some = registers(f32, [high, 16], layout="wgmma_a")
    return [some, registers(f32, [high, 16], layout="wgmma_a")] if count == 2 else [some]


def store_part(x, result, buffer, to, first):
    """Each warpgroup's 64 rows, through a buffer of its own; TMA may still read the other one, but at a tile's first part."""
    with one_thread("warpgroup"):
        if first:
            bulk.wait_read(0)
        else:
            bulk.wait_read(1)
    sync("warpgroup")
    result[:] = x
    store_rows(result, buffer)
    fence.async_shared()
    sync("warpgroup")
    with one_thread("warpgroup"):
        tma.store(buffer, to[part(warpgroup, 64), :])
        bulk.commit()
