"""Two warpgroups multiply from one buffer. A thread of the first refills it when its own products are done: a wait for wgmma says
nothing of the other warpgroup, which may still multiply, or wait for the phase before.

Public: https://github.com/triton-lang/triton/issues/11047 (mended in pull request 11050), and
https://github.com/tile-ai/tilelang/issues/2613, where the barrier at the end of the loop is missing.
Flagged: deadlock
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
    a = shared(bf16, [1, 128, 64], swizzle=128)
    b = shared(bf16, [1, 128, 64], swizzle=128)
    full = barrier(1)
    steps = ring(K, 64, 1)
    work = tiles(M, 128, N, 128)

    with role("math", warpgroups=2):
        acc = registers(f32, [128, 128])
        for m, n in work:
            for k in steps:
                if FIXED == 1:
                    sync()
                with one_thread():
                    full[k].expect(a[k], b[k])
                    tma.load(A[m, k], a[k], full[k])
                    tma.load(B[n, k], b[k], full[k])
                full[k].wait()  # <-
                wgmma.fence()
                wgmma(a[k], b[k].T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(0)
            store(acc.to(bf16), C[m, n])
