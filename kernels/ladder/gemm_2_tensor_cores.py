"""C = A B^T by one warpgroup: a tile of A and a tile of B come by TMA, and the tensor cores multiply them.

Everything waits for everything: no product is under way while a tile is loaded, and no load while tiles are multiplied.
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
):
    a = shared(bf16, [64, BK], swizzle=BK * 2)
    b = shared(bf16, [BN, BK], swizzle=BK * 2)
    full = barrier(1)
    with role("all", warpgroups=1):
        acc = registers(f32, [64, BN])
        for m, n in tiles(M, 64, N, BN):
            for k in ring(K, BK, 1):
                with one_thread():
                    full[k].expect(a, b)
                    tma.load(A[m, k], a, full[k])
                    tma.load(B[n, k], b, full[k])
                full[k].wait()
                wgmma.fence()
                wgmma(a, b.T, acc, start=k.first)
                wgmma.commit()
                wgmma.wait(0)
                sync()  # all four warps have multiplied: the place is free
            store(acc.to(bf16), C[m, n])
