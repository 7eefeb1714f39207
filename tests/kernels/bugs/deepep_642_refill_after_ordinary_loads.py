"""A slot is read by ordinary loads, given back, and filled again by TMA. A barrier orders them, but only a fence in each thread
that read keeps the copy, which goes another way to memory, behind the loads.

The kernel sums the rows of X. What it computes is no product, so it states no meaning: its synchronization is proved.

Public: https://github.com/deepseek-ai/DeepEP/pull/642.
Flagged: proxy_fence
"""

from __future__ import annotations

from tessera.language import *


@kernel
def sums(M: index(), X: Tensor[f32, "M", 32], Y: Tensor[f32, 32, out], FIXED: const = 0):
    rows = shared(f32, [4, 32])
    full = barrier(4)
    empty = barrier(4, starts_complete=True)
    steps = ring(M, 1, 4)
    with role("loader", warpgroups=1), one_thread():
        for m in steps:
            empty[m].wait()
            full[m].expect(rows[m])
            tma.load(X[m, :], rows[m], full[m])
    with role("reader", warps=1):
        x = registers(f32, [32], layout="(32,1):(1,32)")
        total = registers(f32, [32], layout="(32,1):(1,32)")
        total[:] = 0.0
        for m in steps:
            full[m].wait()
            load.shared_4(x, rows[m.index % 4, lane])  # <-
            total[:] = total + x
            if FIXED == 1:
                fence.async_shared()
            empty[m].arrive()
        store.global_4(Y[lane], total)
