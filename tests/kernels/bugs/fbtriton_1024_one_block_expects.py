"""A copy to both blocks of a cluster counts its bytes at a barrier of each, and only the first block expects them.

Public: https://github.com/facebookexperimental/triton/pull/1024: all blocks but the first hang.
Flagged: arrivals
"""

from __future__ import annotations

from tessera.language import *


@kernel(cluster=2, means="C[i, j] = sum(A[i, k] * B[j, k], k)")
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
    full = barrier(4, arrivals=1)
    empty = barrier(4, starts_complete=True)
    steps = ring(K, 64, 4)
    work = tiles(M, 64, N, 128, cluster="rows")

    with role("loader", warpgroups=1):
        with one_thread():
            for m, n in work:
                for k in steps:
                    empty[k].wait()
                    if FIXED == 1:
                        full[k].expect(a[k], b[k])
                    else:
                        if rank == 0:
                            full[k].expect(a[k], b[k])
                        else:
                            full[k].expect(a[k])
                    tma.load(A[m, k], a[k], full[k])  # <-
                    tma.load(B[n, k], b[k], full[k], share=True)
        sync("cluster")

    with role("math", warpgroups=1):
        acc = registers(f32, [64, 128])
        for m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[k], b[k].T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(0)
                empty[k].arrive(cluster=True)
            store(acc.to(bf16), C[m, n])
        sync("cluster")
