"""C = A B^T where C has too few tiles for the machine: k is cut into slices, in two kernels.

`partial` is a product whose blocks have a tile and a slice of k each. Its sums, in float32, go to a workspace. `reduce` adds
up what the slices have of an element, in the order of the slices, and stores a function of it. So results are the same
in each run.

A kernel of its own beside kernels/gemm.py: that one ends with the pattern's function, this one with plain sums.

The two are one launch after the other. The second may start as the first one's blocks end, and waits before it touches the
workspace, as the first waits for the kernel before it.
"""

from __future__ import annotations

from tessera.language import *


@kernel(cluster="CLUSTER", means="sum(P[s, i, j], s) = sum(A[i, k] * B[j, k], k)")
def partial(
    M: index(multiple=M_MULTIPLE, below=M_BELOW),
    N: index(multiple=N_MULTIPLE, below=N_BELOW),
    K: index(multiple=K_MULTIPLE, below=1 << 20),
    S: index(below=1 << 10),  # slices
    A_STRIDE: index(multiple=16 // ELEMENT.bytes),
    B_STRIDE: index(multiple=16 // ELEMENT.bytes),
    P_STRIDE: index(multiple=4),
    P_SLICE: index(multiple=4, below=1 << 38),
    A: Tensor[ELEMENT, "M", "K", strides("A_STRIDE", 1) if A_ORDER == 1 else strides(1, "A_STRIDE")],
    B: Tensor[ELEMENT, "N", "K", strides("B_STRIDE", 1) if B_ORDER == 1 else strides(1, "B_STRIDE")],
    P: Tensor[
        f32,
        "S",
        "M",
        "N",
        strides("P_SLICE", "P_STRIDE", 1) if P_ORDER == 1 else strides("P_SLICE", 1, "P_STRIDE"),
        out,
    ],
    ELEMENT: const = bf16,
    BM: const = 128,  # rows of a tile
    ROWS: const = 64,  # of them each consumer warpgroup makes: 64, or 128, which takes twice the registers
    BN: const = 128,  # columns of a tile
    BK: const = 64,  # elements of k in a slot
    STAGES: const = 4,  # slots of the ring
    CLUSTER: const = 1,  # blocks of a cluster
    BESIDE: const = 0,  # 1: they lie side by side and share A; 0: one above the other, and share B
    A_ORDER: const = 1,  # how A lies: 1: rows, 2: columns, A_STRIDE elements apart
    B_ORDER: const = 1,
    P_ORDER: const = 1,  # of a slice of P
    M_BELOW: const = 1 << 17,  # so that tiles times slices are counted in 32 bits: 64-bit divisions would precede the first load
    N_BELOW: const = 1 << 13,
    M_MULTIPLE: const = 1,  # what is known of M, N and K
    N_MULTIPLE: const = 1,
    K_MULTIPLE: const = 1,
    ROUND: const = 0,  # 1: f32 operands are rounded to tf32 when they are loaded, not cut
    SPREAD: const = 0,  # 1: slices take slots by turns; 0: a slice's slots follow one another
):
    assert BM % ROWS == 0 and (ROWS == 64 or ROWS == 128), "a consumer warpgroup makes 64 rows, or 128"
    assert BN <= 256, "wgmma makes at most 256 columns"

    groups = BM // ROWS  # consumer warpgroups
    high = groups * 64  # rows of a tile that they make at a time
    part_columns = BN if BN < 32 else 32  # that leave at a time
    row = BK * ELEMENT.bytes  # where k lies side by side, a row fills its swizzle; m or n lie in panels of 128 bytes
    a = shared(ELEMENT, [STAGES, BM, BK], swizzle=128 if A_ORDER == 2 else row, contiguous=1 if A_ORDER == 2 else 2)
    b = shared(ELEMENT, [STAGES, BN, BK], swizzle=128 if B_ORDER == 2 else row, contiguous=1 if B_ORDER == 2 else 2)
    full = barrier(STAGES, arrivals=1)  # the producer's, with the bytes that it loads
    empty = barrier(STAGES, arrivals=groups * 4 * CLUSTER, starts_complete=True)  # one of each consumer warp
    # All slices have as many turns. What the last ones have beyond the end of K is zero.
    turns = (cdiv(K, BK) - 1) // S + 1
    steps = ring(turns, 1, STAGES)
    work = tiles(S, 1, M, BM, N, BN, cluster="columns" if BESIDE == 1 else "rows")

    # What follows touches tensors, which the kernel before this one may still write. The next one is not let in early: all
    # blocks of `reduce` would crowd on the few multiprocessors that this grid leaves free.
    grid.wait()

    with role("producer", warpgroups=1, registers=40):
        with one_thread():
            for s, m, n in work:
                for k in steps:
                    here = part(k.index * S + s.index if SPREAD == 1 else s.index * turns + k.index, BK)
                    empty[k].wait()
                    full[k].expect(a[k], b[k])
                    tma.load(A[m, here], a[k], full[k], share=BESIDE == 1, round=ROUND == 1)
                    tma.load(B[n, here], b[k], full[k], share=BESIDE == 0, round=ROUND == 1)
            if CLUSTER > 1:
                for k in next_turns(steps, work):
                    empty[k].wait()  # the block stays until the cluster's consumers have left its slots

    with role("consumer", warpgroups=groups, registers="rest"):
        acc = registers(f32, [high, BN], layout="wgmma")
        sums = [acc, registers(f32, [high, BN], layout="wgmma")] if ROWS == 128 else [acc]
        for s, m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                for h in static_range(ROWS // 64):
                    wgmma(a[k, part(h, high)], b[k].T, sums[h], start=k.first)
                wgmma.commit()
                wgmma.wait(1)  # the products of turn k - 1 are complete: its slot may be filled again
                if k.index > 0:
                    empty[k - 1].arrive(cluster=True)
            wgmma.wait(0)
            empty[steps.last].arrive(cluster=True)
            for h in static_range(ROWS // 64):
                for c in parts(BN, part_columns):
                    store(sums[h][:, c], P[s.index, m[part(h, high)], n[c]])


def plain(x, batch, m, n):
    """The sums themselves. x is a part of a tile; batch, m and n are where it lies in C."""
    return x


@kernel(means="C[i, j] = sum(P[s, i, j], s)")
def reduce(
    M: index(multiple=M_MULTIPLE, below=1 << 17),
    N: index(multiple=N_MULTIPLE, below=1 << 17),
    S: index(below=1 << 10),
    P_STRIDE: index(multiple=4),
    P_SLICE: index(multiple=4, below=1 << 38),
    C_STRIDE: index(multiple=C_MULTIPLE),
    P: Tensor[f32, "S", "M", "N", strides("P_SLICE", "P_STRIDE", 1)],
    C: Tensor[RESULT, "M", "N", strides("C_STRIDE", 1), out],
    RESULT: const = bf16,
    WARPS: const = 4,  # of a block, each with a row of 128 columns: 4, 8 or 16
    AHEAD: const = 8,  # slices that are loaded before the first of them is added
    M_MULTIPLE: const = 1,
    N_MULTIPLE: const = 1,
    C_MULTIPLE: const = 1,
    epilogue: fn = plain,
):
    assert WARPS == 4 or WARPS == 8 or WARPS == 16, "a block has 4, 8 or 16 warps"
    # From lane, warp and slot to the element: four neighbours a lane.
    eight = "((32,8),4):((32,1),8)" if WARPS == 8 else "((32,16),4):((64,1),16)"
    lies = "((32,4),4):((16,1),4)" if WARPS == 4 else eight

    with role("adders", warps=WARPS):
        total = registers(f32, [WARPS, 128], layout=lies)
        for batch, m, n in tiles(1, 1, M, WARPS, N, 128):
            total[:] = 0.0
            grid.wait()  # where the tile lies is known by now, and the first kernel's sums are there
            grid.launch()
            for chunk in range(cdiv(S, AHEAD)):
                more = load(P[chunk * AHEAD, m, n], like=total)
                for u in static_range(AHEAD - 1):
                    more = more + load(P[chunk * AHEAD + u + 1, m, n], like=total)
                total[:] = total + more
            store(epilogue(total, batch, m, n), C[m, n])
