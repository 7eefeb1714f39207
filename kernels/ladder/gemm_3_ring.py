"""C = A B^T with a ring: one warpgroup loads, two multiply, and loads run ahead by as many slots as there are.

Who loads waits for a slot to be empty, who multiplies waits for it to be full. A slot is given back when its product is
complete.
"""

from __future__ import annotations

from tessera.language import *


@kernel(means="C[i, j] = sum(A[i, k] * B[j, k], k)")
def gemm(
    M: index(multiple=8, below=1 << 19),
    N: index(multiple=8, below=1 << 19),
    K: index(multiple=8, below=1 << 19),
    A: Tensor[bf16, "M", "K"],
    B: Tensor[bf16, "N", "K"],
    C: Tensor[bf16, "M", "N", out],
    BN: const = 128,
    BK: const = 64,
    STAGES: const = 4,
):
    a = shared(bf16, [STAGES, 128, BK], swizzle=BK * 2)
    b = shared(bf16, [STAGES, BN, BK], swizzle=BK * 2)
    full = barrier(STAGES)
    empty = barrier(STAGES, starts_complete=True)
    steps = ring(K, BK, STAGES)
    work = tiles(M, 128, N, BN)

    with role("producer", warpgroups=1), one_thread():
        for m, n in work:
            for k in steps:
                empty[k].wait()
                full[k].expect(a[k], b[k])
                tma.load(A[m, k], a[k], full[k])
                tma.load(B[n, k], b[k], full[k])

    with role("consumer", warpgroups=2):
        acc = registers(f32, [128, BN])
        for m, n in work:
            for k in steps:
                full[k].wait()
                wgmma.fence()
                wgmma(a[k], b[k].T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(0)
                empty[k].arrive()
            store(acc.to(bf16), C[m, n])
