"""Kernels that go over rows: a root-mean-square norm, and a scaled sum.

Both are written for one warp per row, and for rows that the launch chooses: the last block's rows may lie outside of the
tensors, and so may the last columns; loads and stores are bounded there.
"""

from __future__ import annotations

from tessera.language import *


@kernel(threads=128)
def rms_norm(
    M: index(),
    X: Tensor[ELEMENT, "M", COLUMNS],
    W: Tensor[ELEMENT, 1, COLUMNS],
    Y: Tensor[ELEMENT, "M", COLUMNS, out],
    ELEMENT: const = bf16,
    ROWS: const = 4,  # rows of a block, one per warp
    COLUMNS: const = 1024,
    EPSILON: const = 1e-6,
):
    for m in tiles(M, ROWS, persistent=False):
        x = load(X[m, :], lanes=32).to(f32)
        scale = rsqrt(sum(x * x, axis=1) / COLUMNS + EPSILON)
        w = load(W[:, :], lanes=32)
        store(x * scale * w, Y[m, :])


@kernel(threads=128, means="Z[i, j] = X[i, j] + SCALE * Y[i, j]")
def scaled_sum(
    M: index(),
    N: index(multiple=4),
    X: Tensor[ELEMENT, "M", "N"],
    Y: Tensor[ELEMENT, "M", "N"],
    Z: Tensor[ELEMENT, "M", "N", out],
    ELEMENT: const = f32,
    ROWS: const = 4,
    COLUMNS: const = 256,
    SCALE: const = 0.5,
):
    for m, n in tiles(M, ROWS, N, COLUMNS):
        store(load(X[m, n]) + SCALE * load(Y[m, n]), Z[m, n])
