"""C = A B^T for 16-bit elements whose rows begin anywhere: TMA takes strides that are multiples of 16 bytes alone.

The threads of one warpgroup load tiles of A, those of another tiles of B, WIDTH elements at once, as many as all rows'
beginnings are multiples of. What lies outside of a matrix is zero. They put the tiles into a ring of STAGES slots as TMA
would: swizzled, so that wgmma reads them. A tile's loads are under way while its slot is still in use. Other warpgroups
multiply; each makes 64 rows.

The blocks are persistent, and results leave from registers, through `epilogue`.

The kernel may start while the one before it still runs: it sets up its barriers, and waits before it touches a tensor.

Tests of the checker prove it, and edit it; the search copies such rows first (kernels/copies.py), which is faster.
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
    K: index(multiple=WIDTH, below=1 << (19 if BATCHES == 1 else 20)),
    L: index(below=1 << 16),  # batches
    A_STRIDE: index(multiple=WIDTH),
    A_BATCH: index(multiple=WIDTH, below=1 << 38),
    B_STRIDE: index(multiple=WIDTH),
    B_BATCH: index(multiple=WIDTH, below=1 << 38),
    C_STRIDE: index(multiple=C_MULTIPLE),
    C_BATCH: index(multiple=C_MULTIPLE, below=1 << 38),
    A: Tensor[ELEMENT, "L" if A_BATCHES == 1 else None, "M", "K", strides("A_BATCH", "A_STRIDE", 1)],
    B: Tensor[ELEMENT, "L" if B_BATCHES == 1 else None, "N", "K", strides("B_BATCH", "B_STRIDE", 1)],
    C: Tensor[RESULT, "L" if BATCHES == 1 else None, "M", "N", strides("C_BATCH", "C_STRIDE", 1), out],
    ELEMENT: const = bf16,
    RESULT: const = "ELEMENT",
    WIDTH: const = 1,  # elements that a thread loads at once: 1, 2 or 4. K and the strides are multiples of it
    BM: const = 128,  # rows of a tile, 64 for each consumer warpgroup
    BN: const = 128,  # columns of a tile
    BK: const = 16,  # elements of k in a slot: 16, 32 or 64
    STAGES: const = 4,  # slots of the ring
    GROUP: const = 8,  # tiles of rows that are taken side by side, for the cache
    BATCHES: const = 0,  # 1: C has L matrices; 0: it is one
    A_BATCHES: const = 0,  # 1: A has one for each batch; 0: one for all
    B_BATCHES: const = 0,
    M_MULTIPLE: const = 1,  # what is known of M and N
    N_MULTIPLE: const = 1,
    C_MULTIPLE: const = 1,  # of C's strides
    PART: const = 32,  # columns that leave at a time
    LOADER: const = 112,  # registers of a thread that loads
    epilogue: fn = plain,
):
    assert BATCHES == 1 or A_BATCHES + B_BATCHES == 0, "C has a matrix for each batch"
    assert WIDTH == 1 or WIDTH == 2 or WIDTH == 4, "wider vectors are TMA's"
    assert BM % 64 == 0 and BN % PART == 0 and BN <= 256, "a warpgroup makes 64 rows, wgmma at most 256 columns"

    a = shared(ELEMENT, [STAGES, BM, BK], swizzle=2 * BK)
    b = shared(ELEMENT, [STAGES, BN, BK], swizzle=2 * BK)
    full = barrier(STAGES, arrivals=8)  # one of each warp that loads
    empty = barrier(STAGES, arrivals=BM // 64 * 4, starts_complete=True)  # one of each consumer warp
    steps = ring(K, BK, STAGES)
    work = tiles(L if BATCHES == 1 else 1, 1, M, BM, N, BN, group=GROUP, even=True)

    grid.wait()  # what follows touches tensors, which the kernel before this one may still write
    grid.launch()

    with role("rows", warpgroups=1, registers=LOADER):
        for batch, m, n in work:
            for k in steps:
                x = load(A[batch.index, m, k], lanes=BK // WIDTH)
                empty[k].wait()
                hand_over(x, a[k], full[k])

    with role("columns", warpgroups=1, registers=LOADER):
        for batch, m, n in work:
            for k in steps:
                x = load(B[batch.index, n, k], lanes=BK // WIDTH)
                empty[k].wait()
                hand_over(x, b[k], full[k])

    with role("consumer", warpgroups=BM // 64, registers="rest"):
        sums = registers(f32, [BM, BN], layout="wgmma")
        for batch, m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[k], b[k].T, sums, start=k.first)
                wgmma.commit()
                wgmma.wait(1)  # the products of turn k - 1 are complete: its slot may be filled again
                if k.index > 0:
                    empty[k - 1].arrive()
            wgmma.wait(0)
            empty[steps.last].arrive()
            for c in parts(BN, PART):
                store(epilogue(sums[:, c], batch, m, n[c]), C[batch.index, m, n[c]])


def hand_over(x, slot, filled):
    """A tile that threads have loaded, to wgmma."""
    store(x, slot)
    fence.async_shared()
    filled.arrive()
