"""C = A B^T for 16-bit elements, both operands with k contiguous, summed in float32.

One warpgroup loads tiles of A and B by TMA into a ring of STAGES slots; the others multiply them by wgmma, 64 rows each.
The blocks are persistent: each goes over its share of C's tiles, and the ring runs on from tile to tile, so the loads of
the next tile begin while the last one is stored. Results leave 64 columns at a time, through stmatrix and TMA.
"""

from __future__ import annotations

from tessera.language import *


@kernel(means="C[i, j] = sum(A[i, k] * B[j, k], k)")
def gemm(
    M: index(multiple=8, below=1 << 20),
    N: index(multiple=8, below=1 << 20),
    K: index(multiple=8, below=1 << 20),
    A: Tensor[ELEMENT, "M", "K"],
    B: Tensor[ELEMENT, "N", "K"],
    C: Tensor[ELEMENT, "M", "N", out],
    ELEMENT: const = bf16,
    BM: const = 128,  # rows of a tile, 64 per consumer warpgroup
    BN: const = 256,  # columns of a tile
    BK: const = 64,  # elements of k in a slot: rows of 2 BK bytes, as wide as their swizzle
    STAGES: const = 4,  # slots of the ring
    GROUP: const = 8,  # tiles of rows that are taken side by side, for the cache
    epilogue: fn = identity,
):
    assert BM % 64 == 0, "a consumer warpgroup makes 64 rows"
    assert BN % 64 == 0 and BN <= 256, "results leave 64 columns at a time, and wgmma makes at most 256"

    a = shared(ELEMENT, [STAGES, BM, BK], swizzle=2 * BK)
    b = shared(ELEMENT, [STAGES, BN, BK], swizzle=2 * BK)
    staging = shared(ELEMENT, [BM // 64, 2, 64, 64], swizzle=128)  # two buffers per consumer warpgroup
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=BM // 16, starts_complete=True)  # one of each consumer warp
    steps = ring(K, BK, STAGES)

    with role("producer", warpgroups=1, registers=40), one_thread():
        for m, n in tiles(M, BM, N, BN, group=GROUP):
            for k in steps:
                empty[k].wait()
                full[k].expect(a[k], b[k])
                tma.load(A[m, k], a[k], full[k])
                tma.load(B[n, k], b[k], full[k])

    with role("consumer", warpgroups=BM // 64, registers="rest"):
        acc = registers(f32, [BM, BN])
        result = registers(ELEMENT, [BM, 64])
        for m, n in tiles(M, BM, N, BN, group=GROUP):
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[k], b[k].T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(1)  # the products of turn k - 1 are complete: its slot may be filled again
                if k.index > 0:
                    empty[k - 1].arrive()
            wgmma.wait(0)
            empty[steps.last].arrive()
            store_tile(acc, result, staging, C[m, n], epilogue)
        with one_thread("warpgroup"):
            bulk.wait_read(0)  # shared memory has to stay until the last stores have read it


def store_tile(acc, result, staging, tile, epilogue):
    """The elements of acc, 64 columns at a time, through one of two buffers while TMA still reads the other one."""
    for c in parts(tile.shape[1], 64, 2):
        buffer = staging[warpgroup, c]
        with one_thread("warpgroup"):
            bulk.wait_read(1)
        sync("warpgroup")
        result[:] = epilogue(acc[:, c])
        stmatrix(result, buffer)
        fence.async_shared()
        sync("warpgroup")
        with one_thread("warpgroup"):
            tma.store(buffer, tile[part(warpgroup, 64), c])
            bulk.commit()
