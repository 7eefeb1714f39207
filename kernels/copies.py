"""A copy of a matrix whose rows begin at multiples of 16 bytes, as TMA asks for, from one whose rows begin anywhere.

A warp takes a part of a row: 32 lanes side by side, each with WIDTH elements, as many as all rows' beginnings are multiples
of, and that VECTORS times. All of it is on its way before the first is stored.

The kernel may start while the one before it still runs: it waits before it touches a tensor.
"""

from __future__ import annotations

from tessera.language import *


@kernel(means="Y[b, i, j] = X[b, i, j]")
def copy(
    M: index(below=1 << 20),
    N: index(multiple=WIDTH, below=1 << 20),
    L: index(below=1 << 16),  # batches
    X_STRIDE: index(multiple=WIDTH),
    X_BATCH: index(multiple=WIDTH, below=1 << 38),
    Y_STRIDE: index(multiple=16 // ELEMENT.bytes),
    Y_BATCH: index(multiple=16 // ELEMENT.bytes, below=1 << 38),
    X: Tensor[ELEMENT, "L", "M", "N", strides("X_BATCH", "X_STRIDE", 1)],
    Y: Tensor[ELEMENT, "L", "M", "N", strides("Y_BATCH", "Y_STRIDE", 1), out],
    ELEMENT: const = bf16,
    WIDTH: const = 1,  # elements that a thread loads at once. N and the strides are multiples of it
    VECTORS: const = 8,  # that a thread loads before it stores the first
    WARPS: const = 8,  # of a block, each with a row
):
    with role("movers", warps=WARPS):
        for b, m, n in tiles(L, 1, M, WARPS, N, 32 * WIDTH * VECTORS, persistent=False):
            grid.wait()  # where the tile lies is known by now
            grid.launch()
            store(load(X[b.index, m, n], lanes=32), Y[b.index, m, n])
