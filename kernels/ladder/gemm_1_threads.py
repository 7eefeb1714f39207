"""C = A B^T, each thread two elements: what a reader writes first.

Each thread reads a row of A and a row of B, element by element. Nothing is reused but what the caches hold, and the tensor
cores stand still. B is given as K x N, with k side by side, for a tile of it to lie as a tile of C does.
"""

from __future__ import annotations

from tessera.language import *


@kernel(threads=256, means="C[i, j] = sum(A[i, k] * B[k, j], k)")
def gemm(
    M: index(multiple=8),
    N: index(multiple=8),
    K: index(multiple=8),
    A: Tensor[bf16, "M", "K"],
    B: Tensor[bf16, "K", "N", strides(1, "K")],
    C: Tensor[bf16, "M", "N", out],
):
    sums = registers(f32, [16, 32], layout="((16,16),2):((1,16),256)")
    for m, n in tiles(M, 16, N, 32, persistent=False):
        sums[:] = 0.0
        for k in range(K):
            sums[:] = sums + load(A[m, part(k, 1)], like=sums).to(f32) * load(B[part(k, 1), n], like=sums).to(f32)
        store(sums.to(bf16), C[m, n])
