"""C = silu(A B^T) * (A D^T) for 16-bit elements, summed in float32: two products that share A, and meet on their way out.

This is kernels/gemm.py with a second matrix of weights. A slot of the ring has BN rows of B and behind them the same BN
rows of D, so a tile of A is loaded once for both. Up to BN = 128 one wgmma makes both products side by side; wider tiles
have one wgmma and accumulators of their own for each. A thread then has the same element of both, and no other thread is
asked. `epilogue` makes one result of the two.

It is a file of its own, and no form of gemm.py: what a tile has, how wide its products are and what leaves it are others,
and there are no batches and no promoted sums. Roles, rings, turns and clusters are those of gemm.py.
"""

from __future__ import annotations

from tessera.language import *


def swiglu(gate, up, batch, m, n):
    """gate and up are parts of the two products' tiles; m and n are where they lie in C."""
    return silu(gate) * up


@kernel(cluster="CLUSTER", means="C[i, j] = silu(sum(A[i, k] * B[j, k], k)) * sum(A[i, k] * D[j, k], k)")
def gated(
    M: index(multiple=M_MULTIPLE, below=1 << 20),
    N: index(multiple=N_MULTIPLE, below=1 << 20),
    K: index(multiple=K_MULTIPLE, below=1 << 20),
    A_STRIDE: index(multiple=16 // ELEMENT.bytes),
    B_STRIDE: index(multiple=16 // ELEMENT.bytes),
    D_STRIDE: index(multiple=16 // ELEMENT.bytes),
    C_STRIDE: index(multiple=C_MULTIPLE),
    A: Tensor[
        ELEMENT,
        "M",
        "K",
        strides("A_STRIDE", 1) if A_ORDER == 1 else strides(1, "A_STRIDE") if A_ORDER == 2 else strides(),
    ],
    B: Tensor[
        ELEMENT,
        "N",
        "K",
        strides("B_STRIDE", 1) if B_ORDER == 1 else strides(1, "B_STRIDE") if B_ORDER == 2 else strides(),
    ],
    D: Tensor[
        ELEMENT,
        "N",
        "K",
        strides("D_STRIDE", 1) if B_ORDER == 1 else strides(1, "D_STRIDE") if B_ORDER == 2 else strides(),
    ],
    C: Tensor[RESULT, "M", "N", strides("C_STRIDE", 1) if C_ORDER == 1 else strides(), out],
    ELEMENT: const = bf16,
    RESULT: const = "ELEMENT",
    BM: const = 128,  # rows of a tile
    ROWS: const = 64,  # of them each consumer warpgroup makes: 64, or 128, which takes twice the registers
    BN: const = 128,  # columns of a tile of C: it takes as many of B and of D
    BK: const = 64,  # elements of k in a slot
    STAGES: const = 4,  # slots of the ring
    GROUP: const = 8,  # tiles of rows that are taken side by side, for the cache
    CLUSTER: const = 1,  # blocks of a cluster
    BESIDE: const = 0,  # 1: they lie side by side and share A; 0: one above the other, and share B and D
    A_ORDER: const = 0,  # how A lies: 0: rows without gaps; 1: rows, 2: columns, A_STRIDE elements apart
    B_ORDER: const = 0,  # of B and of D
    C_ORDER: const = 0,  # 0 or 1
    M_MULTIPLE: const = 8,  # what is known of M, N and K. Strides in bytes have to be multiples of 16
    N_MULTIPLE: const = 8,
    K_MULTIPLE: const = 8,
    C_MULTIPLE: const = 8,  # of C's stride
    ROUND: const = 0,  # 1: f32 operands are rounded to tf32 when they are loaded, not cut
    PART: const = 64,  # columns that leave at a time
    TURNS: const = 1,  # roles of consumers that take tiles by turns: 1 or 2
    DIRECT: const = 0,  # 1: results leave from registers; 0: by TMA, of 16 or 32 bits
    epilogue: fn = swiglu,
):
    assert BM % ROWS == 0 and (ROWS == 64 or ROWS == 128), "a consumer warpgroup makes 64 rows, or 128"
    assert BN % PART == 0 and BN <= 256, "results leave PART columns at a time, and wgmma makes at most 256"
    assert ROWS == 64 or BN <= 128, "a thread has no registers for two products of 128 rows"
    assert TURNS == 1 or TURNS == 2, "tiles are taken by one role of consumers, or by two"

    groups = BM // ROWS  # consumer warpgroups of a role
    high = groups * 64  # rows of a tile that they make at a time
    products = 1 if BN <= 128 else 2  # wgmmas of a step
    wide = 2 * BN // products  # columns of each
    row = BK * ELEMENT.bytes  # where k lies side by side, a row fills its swizzle; m or n lie in panels of 128 bytes
    a = shared(ELEMENT, [STAGES, BM, BK], swizzle=128 if A_ORDER == 2 else row, contiguous=1 if A_ORDER == 2 else 2)
    b = shared(ELEMENT, [STAGES, 2 * BN, BK], swizzle=128 if B_ORDER == 2 else row, contiguous=1 if B_ORDER == 2 else 2)
    if DIRECT == 0:
        # Two per consumer warpgroup.
        staging = shared(RESULT, [TURNS * groups, 2, 64, PART], swizzle=PART * RESULT.bytes)
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=groups * 4 * CLUSTER, starts_complete=True)  # one of each warp of a role
    if TURNS == 2:
        multiplied = barrier(2, arrivals=groups * 4)  # a role has seen all that is loaded for its tile
    steps = ring(K, BK, STAGES)
    along = "columns" if BESIDE == 1 else "rows"
    work = tiles(1, 1, M, BM, N, BN, group=GROUP, even=True, cluster=along, stages=2)  # of one batch, as epilogues count them

    grid.wait()  # what follows touches tensors, which the kernel before this one may still write
    grid.launch()

    with role("producer", warpgroups=1, registers=40):
        with one_thread():
            for batch, m, n in work:
                for k in steps:
                    empty[k].wait()
                    full[k].expect(a[k], b[k])
                    tma.load(A[m, k], a[k], full[k], share=BESIDE == 1, round=ROUND == 1)
                    tma.load(B[n, k], b[k, part(0, BN)], full[k], share=BESIDE == 0, round=ROUND == 1)
                    tma.load(D[n, k], b[k, part(1, BN)], full[k], share=BESIDE == 0, round=ROUND == 1)
            if CLUSTER > 1:
                for k in next_turns(steps, work):
                    empty[k].wait()  # the block stays until the cluster's consumers have left its slots

    for w in static_range(TURNS):
        with role("consumer" if TURNS == 1 else ["first", "second"][w], warpgroups=groups, registers="rest"):
            acc = registers(f32, [high, wide], layout="wgmma")
            # One for each 64 rows of a warpgroup, or for each product.
            sums = [acc, registers(f32, [high, wide], layout="wgmma")] if products * ROWS > 64 else [acc]
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
                        wgmma.fence()
                        for h in static_range(ROWS // 64):
                            for p in static_range(products):
                                wgmma(a[k, part(h, high)], b[k, part(p, wide)].T, sums[h * products + p], start=k.first)
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
                        for c in parts(BN, PART):
                            gate = sums[h * products][:, c]
                            up = sums[h * products + products - 1][:, c + (BN // PART if products == 1 else 0)]
                            x = epilogue(gate, up, batch, rows, n[c])
                            if DIRECT == 1:
                                store(x, C[rows, n[c]])
                            else:
                                store_part(x, result, staging[buffers, c.index % 2], C[rows, n[c]], c.first, RESULT.bytes)
            if DIRECT == 0:
                with one_thread("warpgroup"):
                    bulk.wait_read(0)  # shared memory has to stay until the last stores have read it


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
