"""A product of tiles in a ring of four slots; B comes in two halves."""

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
                empty[k].wait()
                full[k].expect(a[k], b[k])
                tma.load(A[m, k], a[k], full[k])
                tma.load(B[n[part(0, 64)], k], b[k, part(0, 64)], full[k])
                tma.load(B[n[part(1, 64)], k], b[k, part(0, 64)], full[k])

    with role("math", warpgroups=1):
        acc = registers(f32, [64, 128])
        for m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[k], b[k].T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(0)
                empty[k].arrive()
            store(acc.to(bf16), C[m, n])
