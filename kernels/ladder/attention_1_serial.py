"""O = softmax(Q K^T / sqrt(D)) V by one warpgroup for 64 queries: one block of keys after the other.

Scores never leave registers. A row keeps the greatest score and the sum of its powers so far; when a greater score comes, what
was summed is corrected (Dao et al., FlashAttention). Loads, products and powers wait for each other.
"""

from __future__ import annotations

from tessera.language import *

LOG2_E = 1.4426950408889634


@kernel(threads=128, means="O[b, h, i, e] = sum(softmax(D**-0.5 * sum(Q[b, h, i, d] * K[b, h, j, d], d), j) * V[b, h, j, e], j)")
def attention(
    TQ: index(below=1 << 17),
    TK: index(below=1 << 17),
    H: index(below=1 << 9),
    B: index(below=1 << 12),
    Q: Tensor[bf16, "B", "H", "TQ", D],
    K: Tensor[bf16, "B", "H", "TK", D],
    V: Tensor[bf16, "B", "H", "TK", D],
    O: Tensor[bf16, "B", "H", "TQ", D, out],
    D: const = 128,
    KEYS: const = 128,
):
    swizzle = 128 if D % 64 == 0 else 64
    q = shared(bf16, [64, D], swizzle=swizzle, contiguous=1)
    k = shared(bf16, [KEYS, D], swizzle=swizzle, contiguous=1)
    v = shared(bf16, [D, KEYS], swizzle=swizzle, contiguous=0)  # as memory has it: D lies side by side
    q_full = barrier(1)
    k_full = barrier(1)
    v_full = barrier(1)
    scores = registers(f32, [64, KEYS], layout="wgmma")
    powers = registers(bf16, [64, KEYS], like=scores)
    sums = zeros(f32, [64, D])
    most = registers(f32, [64, 1], like=scores)
    total = registers(f32, [64, 4], like=scores)  # of each lane, which all get the same factors
    most[:] = -inf
    total[:] = 0.0
    for batch, head, m in tiles(B, 1, H, 1, TQ, 64, persistent=False):
        with one_thread():
            q_full[0].expect(q)
            tma.load(Q[batch.index, head.index, m, :], q, q_full[0])
        q_full[0].wait(parity=0)
        for step in ring(TK, KEYS, 1):
            with one_thread():
                k_full[step].expect(k)
                tma.load(K[batch.index, head.index, step, :], k, k_full[step])
                v_full[step].expect(v)
                tma.load(V[batch.index, head.index, step, :], v.T, v_full[step])
            k_full[step].wait()
            wgmma.fence()
            wgmma(q, k.T, scores, start=True)
            wgmma.commit()
            wgmma.wait(0)
            hide(scores, step.start, TK)
            factor = soften(scores, most, total, D**-0.5)
            sums *= factor
            powers[:] = scores
            v_full[step].wait()
            wgmma.fence()
            wgmma(powers, v.T, sums)
            wgmma.commit()
            wgmma.wait(0)
            sync()  # all four warps have multiplied: both places are free
        share = registers(f32, most.shape, like=scores)
        share[:] = 1.0 / sum(total, axis=1)
        store((sums * share).to(bf16), O[batch.index, head.index, m, :])


def hide(scores, first_key, TK):
    """Scores of keys past the end become -inf."""
    scores[:] = where(TK <= first_key + indices(scores, axis=1), -inf, scores)


def soften(scores, most, total, scale):
    """Scores become powers of 2; `most` and `total` take them in. Gives the factor of what was summed before."""
    before = registers(f32, most.shape, like=scores)
    before[:] = most
    most[:] = max(most, amax(scores, axis=1))
    shift = registers(f32, most.shape, like=scores)
    shift[:] = where(most == -inf, 0.0, most * (scale * LOG2_E))  # no key so far: -inf - -inf would be NaN
    factor = registers(f32, most.shape, like=scores)
    factor[:] = exp2_flushed(before * (scale * LOG2_E) - shift)
    scores[:] = exp2_flushed(scores * (scale * LOG2_E) - shift)
    total[:] = total * factor + lane_sum(scores, axis=1)
    return factor
