"""The sums of slices of k, as `partial` of kernels/gemm_slices.py makes them, for float32 elements as the tensor cores see
them (tf32), where A lies column by column. That file's `reduce` adds them up.

wgmma reads 4-byte elements of shared memory along k only, so A comes through registers, as in kernels/gemm_tf32.py: a slot
of the ring has two halves, and while the tensor cores multiply one, the threads load their elements of the next.

A block has a tile and a slice of k. The blocks of a cluster work on tiles one above the other, and share B.
"""

from __future__ import annotations

from tessera.language import *


@kernel(cluster="CLUSTER", means="sum(P[s, i, j], s) = sum(A[i, k] * B[j, k], k)")
def partial(
    M: index(multiple=M_MULTIPLE, below=M_BELOW),
    N: index(multiple=N_MULTIPLE, below=N_BELOW),
    K: index(multiple=K_MULTIPLE, below=1 << 20),
    S: index(below=1 << 10),  # slices
    A_STRIDE: index(multiple=4),
    B_STRIDE: index(multiple=4),
    P_STRIDE: index(multiple=4),
    P_SLICE: index(multiple=4, below=1 << 38),
    A: Tensor[f32, "M", "K", strides(1, "A_STRIDE")],
    B: Tensor[f32, "N", "K", strides("B_STRIDE", 1)],
    P: Tensor[
        f32,
        "S",
        "M",
        "N",
        strides("P_SLICE", "P_STRIDE", 1) if P_ORDER == 1 else strides("P_SLICE", 1, "P_STRIDE"),
        out,
    ],
    BM: const = 128,  # rows of a tile
    ROWS: const = 64,  # of them each consumer warpgroup makes: 64, or 128, which takes twice the registers
    BN: const = 128,  # columns of a tile
    STAGES: const = 4,  # slots of the ring
    CLUSTER: const = 1,  # blocks of a cluster, one above the other
    P_ORDER: const = 1,  # how a slice of P lies: 1: rows, 2: columns, P_STRIDE elements apart
    M_BELOW: const = 1 << 17,  # so that tiles times slices are counted in 32 bits: 64-bit divisions would precede the first load
    N_BELOW: const = 1 << 13,
    M_MULTIPLE: const = 1,  # what is known of M, N and K
    N_MULTIPLE: const = 1,
    K_MULTIPLE: const = 1,
    SPREAD: const = 0,  # 1: slices take slots by turns; 0: a slice's slots follow one another
):
    assert BM % ROWS == 0 and (ROWS == 64 or ROWS == 128), "a consumer warpgroup makes 64 rows, or 128"
    assert BN <= 256, "wgmma makes at most 256 columns"

    groups = BM // ROWS  # consumer warpgroups
    high = groups * 64  # rows of a tile that they make at a time
    part_columns = BN if BN < 32 else 32  # that leave at a time
    a = shared(f32, [STAGES, BM, 32], swizzle=128, contiguous=1)
    b = shared(f32, [STAGES, BN, 32], swizzle=128)
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=groups * 4 * CLUSTER, starts_complete=True)  # one of each consumer warp
    # All slices have as many turns. What the last ones have beyond the end of K is zero.
    turns = (cdiv(K, 32) - 1) // S + 1
    steps = ring(turns, 1, STAGES)
    work = tiles(S, 1, M, BM, N, BN, cluster="rows")

    # What follows touches tensors, which the kernel before this one may still write. The next one is not let in early: all
    # blocks of `reduce` would crowd on the few multiprocessors that this grid leaves free.
    grid.wait()

    with role("producer", warpgroups=1, registers=40):
        with one_thread():
            for s, m, n in work:
                for k in steps:
                    here = part(k.index * S + s.index if SPREAD == 1 else s.index * turns + k.index, 32)
                    empty[k].wait()
                    full[k].expect(a[k], b[k])
                    tma.load(A[m, here], a[k], full[k], round=True)
                    tma.load(B[n, here], b[k], full[k], share=True, round=True)
            if CLUSTER > 1:
                for k in next_turns(steps, work):
                    empty[k].wait()  # the block stays until the cluster's consumers have left its slots

    with role("consumer", warpgroups=groups, registers="rest"):
        acc = registers(f32, [high, BN], layout="wgmma")
        sums = [acc, registers(f32, [high, BN], layout="wgmma")] if ROWS == 128 else [acc]
        # Of each half of a slot: the products of one are under way while the other is loaded.
        taken = [elements(high, ROWS // 64), elements(high, ROWS // 64)]
        for s, m, n in work:
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
            wgmma.wait(0)
            empty[steps.last].arrive(cluster=True, release=True)
            for u in static_range(ROWS // 64):
                for c in parts(BN, part_columns):
                    store(sums[u][:, c], P[s.index, m[part(u, high)], n[c]])


def elements(high, count):
    """Of A, for half a slot: `high` rows, once or twice."""
    some = registers(f32, [high, 16], layout="wgmma_a")
    return [some, registers(f32, [high, 16], layout="wgmma_a")] if count == 2 else [some]
