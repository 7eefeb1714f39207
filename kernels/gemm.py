"""C = A B^T for 16-bit elements, summed in float32: one product, or one for each batch.

One warpgroup loads tiles of A and B by TMA into a ring of STAGES slots; the others multiply them by wgmma, 64 or 128
rows each.
The blocks are persistent: each goes over its share of C's tiles, and the ring runs on from tile to tile, so the loads of
the next tile begin while the last one is stored. Results leave PART columns at a time, through shared memory and TMA, or
from registers. On their way out they pass through `epilogue`, which may read tensors of its own.

With HALF, two columns that lie HALF apart in a group make two results together, as rotary embedding does. Tiles hold whole
groups, so a thread has both columns, and `turned` gets them side by side. Parts of the columns are told apart by where they
lie in C.

With PROMOTE, the tensor cores sum few slots at a time, and the warpgroups add up these sums in float32: of elements of 8 bits
the tensor cores keep 14 bits of a sum or so, and a long one loses the rest.

Of two roles of consumers each takes every second tile: while one multiplies, the other's results leave.

The blocks of a cluster work on tiles one above the other, or side by side. The operand that all of them need, B or A,
each loads in part for all. A block ends when the others have left its ring.

The kernel may start while the one before it still runs: it sets up its barriers, and waits before it touches a tensor.
"""

from __future__ import annotations

from tessera.language import *


def plain(x, batch, m, n):
    """The sums themselves. x is a part of a tile; batch, m and n are where it lies in C."""
    return x


def both(low, high, batch, m, left, right, half):
    """The sums themselves: columns `left`, those HALF to the right of them, and where `left` lies in its half group."""
    return [low, high]


@kernel(cluster="CLUSTER", means="C[b, i, j] = sum(A[b, i, k] * B[b, j, k], k)")
def gemm(
    M: index(multiple=M_MULTIPLE, below=1 << (19 if BATCHES == 1 else 20)),
    N: index(multiple=N_MULTIPLE, below=1 << (19 if BATCHES == 1 else 20)),
    K: index(multiple=K_MULTIPLE, below=1 << (19 if BATCHES == 1 else 20)),
    L: index(below=1 << 16),  # batches
    A_STRIDE: index(multiple=16 // ELEMENT.bytes),
    A_BATCH: index(multiple=16 // ELEMENT.bytes, below=1 << 38),
    B_STRIDE: index(multiple=16 // ELEMENT.bytes),
    B_BATCH: index(multiple=16 // ELEMENT.bytes, below=1 << 38),
    C_STRIDE: index(multiple=C_MULTIPLE),
    C_BATCH: index(multiple=C_MULTIPLE, below=1 << 38),
    A: Tensor[
        ELEMENT,
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
        ELEMENT,
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
    ELEMENT: const = bf16,
    RESULT: const = "ELEMENT",
    BM: const = 128,  # rows of a tile
    ROWS: const = 64,  # of them each consumer warpgroup makes: 64, or 128, which takes twice the registers
    BN: const = 256,  # columns of a tile
    BK: const = 64,  # elements of k in a slot
    STAGES: const = 4,  # slots of the ring
    GROUP: const = 8,  # tiles of rows that are taken side by side, for the cache
    CLUSTER: const = 1,  # blocks of a cluster
    BESIDE: const = 0,  # 1: they lie side by side and share A; 0: one above the other, and share B
    BATCHES: const = 0,  # 1: C has L matrices; 0: it is one
    A_BATCHES: const = 0,  # 1: A has one for each batch; 0: one for all
    B_BATCHES: const = 0,
    A_ORDER: const = 0,  # how A lies: 0: rows without gaps; 1: rows, 2: columns, A_STRIDE elements apart
    B_ORDER: const = 0,
    C_ORDER: const = 0,  # 0 or 1
    M_MULTIPLE: const = 8,  # what is known of M, N and K. Strides in bytes have to be multiples of 16
    N_MULTIPLE: const = 8,
    K_MULTIPLE: const = 8,
    C_MULTIPLE: const = 8,  # of C's strides
    ROUND: const = 0,  # 1: f32 operands are rounded to tf32 when they are loaded, not cut
    PART: const = 64,  # columns that leave at a time
    TURNS: const = 1,  # roles of consumers that take tiles by turns: 1 or 2
    PROMOTE: const = 0,  # so many slots, at most, are summed by the tensor cores before float32 takes over; 0: all of k
    DIRECT: const = 0,  # 1: results leave from registers; 0: by TMA, of 16 or 32 bits
    HALF: const = 0,  # columns of half a group, whose halves make results together; 0: each column its own
    epilogue: fn = plain,
    turned: fn = both,  # in the place of `epilogue`, with HALF
):
    assert BATCHES == 1 or A_BATCHES + B_BATCHES == 0, "C has a matrix for each batch"
    assert BM % ROWS == 0 and (ROWS == 64 or ROWS == 128), "a consumer warpgroup makes 64 rows, or 128"
    assert BN % PART == 0 and BN <= 256, "results leave PART columns at a time, and wgmma makes at most 256"
    assert HALF == 0 or HALF % PART == 0 and BN % (2 * HALF) == 0, "tiles hold whole groups, and halves leave in parts"
    assert TURNS == 1 or TURNS == 2, "tiles are taken by one role of consumers, or by two"

    groups = BM // ROWS  # consumer warpgroups of a role
    high = groups * 64  # rows of a tile that they make at a time
    row = BK * ELEMENT.bytes  # where k lies side by side, a row fills its swizzle; m or n lie in panels of 128 bytes
    a = shared(ELEMENT, [STAGES, BM, BK], swizzle=128 if A_ORDER == 2 else row, contiguous=1 if A_ORDER == 2 else 2)
    b = shared(ELEMENT, [STAGES, BN, BK], swizzle=128 if B_ORDER == 2 else row, contiguous=1 if B_ORDER == 2 else 2)
    if DIRECT == 0:
        # Two per consumer warpgroup.
        staging = shared(RESULT, [TURNS * groups, 2, 64, PART], swizzle=PART * RESULT.bytes)
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=groups * 4 * CLUSTER, starts_complete=True)  # one of each warp of a role
    if TURNS == 2:
        multiplied = barrier(2, arrivals=groups * 4)  # a role has seen all that is loaded for its tile
    steps = ring(K, BK, STAGES)
    along = "columns" if BESIDE == 1 else "rows"
    work = tiles(L if BATCHES == 1 else 1, 1, M, BM, N, BN, group=GROUP, even=True, cluster=along, stages=2)

    grid.wait()  # what follows touches tensors, which the kernel before this one may still write
    grid.launch()

    with role("producer", warpgroups=1, registers=40):
        with one_thread():
            for batch, m, n in work:
                for k in steps:
                    empty[k].wait()
                    full[k].expect(a[k], b[k])
                    tma.load(A[batch.index, m, k], a[k], full[k], share=BESIDE == 1, round=ROUND == 1)
                    tma.load(B[batch.index, n, k], b[k], full[k], share=BESIDE == 0, round=ROUND == 1)
            if CLUSTER > 1:
                for k in next_turns(steps, work):
                    empty[k].wait()  # the block stays until the cluster's consumers have left its slots

    for w in static_range(TURNS):
        with role("consumer" if TURNS == 1 else ["first", "second"][w], warpgroups=groups, registers="rest"):
            acc = registers(f32, [high, BN], layout="wgmma")
            sums = [acc, registers(f32, [high, BN], layout="wgmma")] if ROWS == 128 else [acc]
            if PROMOTE > 0:
                total = registers(f32, [high, BN], layout="wgmma")
                totals = [total, registers(f32, [high, BN], layout="wgmma")] if ROWS == 128 else [total]
            if DIRECT == 0:
                result = registers(RESULT, [high, PART])
                buffers = warpgroup if w == 0 else warpgroup + groups
            for batch, m, n in work:
                if TURNS == 1 or work.turn.index % 2 == w:
                    # A waiter that skipped a phase of `full` cannot tell it from the one two later: their parity is equal.
                    if TURNS == 2 and work.turn.index > 0:
                        multiplied[work.turn - 1].wait()
                    if PROMOTE > 0:
                        clear(totals)
                    for k in steps:
                        full[k].wait()
                        begins = k.first
                        if PROMOTE > 0:
                            begins = k.first or k.count % PROMOTE == 0  # of the ring: its slots repeat alike
                            if k.index > 0 and k.count % PROMOTE == 0:
                                wgmma.wait(0)
                                for u in static_range(ROWS // 64):
                                    totals[u][:] = totals[u] + sums[u]
                        wgmma.fence()
                        for h in static_range(ROWS // 64):
                            wgmma(a[k, part(h, high)], b[k].T, sums[h], start=begins)
                        wgmma.commit()
                        wgmma.wait(1)  # the products of turn k - 1 are complete: its slot may be filled again
                        if k.index > 0:
                            empty[k - 1].arrive(cluster=True)
                    if TURNS == 2:
                        multiplied[work.turn].arrive()
                    wgmma.wait(0)
                    empty[steps.last].arrive(cluster=True)
                    for h in static_range(ROWS // 64):
                        rows = m[part(h, high)]
                        if PROMOTE > 0:
                            totals[h][:] = totals[h] + sums[h]
                        whole = totals[h] if PROMOTE > 0 else sums[h]
                        if HALF == 0:
                            for c in parts(BN, PART):
                                x = epilogue(whole[:, c], batch, rows, n[c])
                                to = C[batch.index, rows, n[c]]
                                if DIRECT == 1:
                                    store(x, to)
                                else:
                                    store_part(x, result, staging[buffers, c.index % 2], to, c.first, RESULT.bytes)
                        else:
                            for g in parts(BN, 2 * HALF):
                                for p in static_range(HALF // PART):
                                    half = part(p, PART)
                                    left = g[half]
                                    right = g[part(p + HALF // PART, PART)]
                                    x = turned(whole[:, left], whole[:, right], batch, rows, n[left], n[right], half)
                                    for s in static_range(2):
                                        to = C[batch.index, rows, n[[left, right][s]]]
                                        if DIRECT == 1:
                                            store(x[s], to)
                                        else:
                                            first = g.first if p + s == 0 else False
                                            store_part(x[s], result, staging[buffers, s], to, first, RESULT.bytes)
            if DIRECT == 0:
                with one_thread("warpgroup"):
                    bulk.wait_read(0)  # shared memory has to stay until the last stores have read it


def clear(totals):
    for total in totals:
        total[:] = 0.0


def store_part(x, result, buffer, to, first, width):
    """Each warpgroup's 64 rows, through a buffer of its own; TMA may still read the other one, but at a tile's first part."""
    with one_thread("warpgroup"):
        if first:
            bulk.wait_read(0)
        else:
            bulk.wait_read(1)
    sync("warpgroup")
    result[:] = x
    if width == 2:
        stmatrix(result, buffer)
    else:
        store_rows(result, buffer)
    fence.async_shared()
    sync("warpgroup")
    with one_thread("warpgroup"):
        tma.store(buffer, to[part(warpgroup, 64), :])
        bulk.commit()
