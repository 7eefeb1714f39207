"""Slots and parities are counted from 0 in each tile, but the barriers go on from tile to tile. It is right for one tile a block,
and where the steps of a tile are a multiple of twice the slots.

Public: https://github.com/tile-ai/tilelang/pull/2674, in the comment that tried it on an H100.
Flagged: arrivals
"""

from __future__ import annotations

from tessera.language import *


@kernel(means="C[i, j] = sum(A[i, k] * B[j, k], k)")
def gemm(
    M: index(multiple=8),
    N: index(multiple=8),
    K: index(multiple=8),
    A: Tensor[bf16, "M", "K"],
    B: Tensor[bf16, "N", "K"],
    C: Tensor[bf16, "M", "N", out],
    FIXED: const = 0,
):
    a = shared(bf16, [4, 64, 64], swizzle=128)
    b = shared(bf16, [4, 128, 64], swizzle=128)
    full = barrier(4)
    empty = barrier(4, starts_complete=True)
    steps = ring(K, 64, 4)
    work = tiles(M, 64, N, 128)

    with role("loader", warpgroups=1), one_thread():
        for m, n in work:
            for k in steps:
                if FIXED == 1:
                    empty[k].wait()
                    full[k].expect(a[k], b[k])
                    tma.load(A[m, k], a[k], full[k])
                    tma.load(B[n, k], b[k], full[k])
                else:
                    s = k.index % 4
                    empty[s].wait(parity=(k.index // 4 + 1) % 2)
                    full[s].expect(a[s], b[s])  # <-
                    tma.load(A[m, k], a[s], full[s])
                    tma.load(B[n, k], b[s], full[s])
    with role("math", warpgroups=1):
        acc = registers(f32, [64, 128])
        for m, n in work:
            for k in steps:
                if FIXED == 1:
                    full[k].wait()
                    wgmma.fence()
                    wgmma(a[k], b[k].T, acc, start=k.first)
                    wgmma.commit()
                    wgmma.wait(0)
                    empty[k].arrive()
                else:
                    s = k.index % 4
                    full[s].wait(parity=k.index // 4 % 2)
                    wgmma.fence()
                    wgmma(a[s], b[s].T, acc, start=k.first)
                    wgmma.commit()
                    wgmma.wait(0)
                    empty[s].arrive()
            store(acc.to(bf16), C[m, n])
