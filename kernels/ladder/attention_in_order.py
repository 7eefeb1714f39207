"""O = softmax(Q K^T / sqrt(D)) V, one step after the other: scores, powers, products with values.

Scores never leave registers. A row keeps the greatest score and the sum of its powers so far; when a greater score comes, what
was summed is corrected (Dao et al., FlashAttention). One warpgroup loads blocks of keys and values into rings of STAGES slots; the
others own 64 queries each. Within each of them, tensor cores and powers wait for each other.
"""

from __future__ import annotations

from tessera.language import *

LOG2_E = 1.4426950408889634


@kernel(means="O[b, h, i, e] = sum(softmax(D**-0.5 * sum(Q[b, h, i, d] * K[b, h, j, d], d), j) * V[b, h, j, e], j)")
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
    GROUPS: const = 2,  # consumer warpgroups, of 64 queries each
    STAGES: const = 2,  # slots of each ring
):
    swizzle = 128 if D % 64 == 0 else 64
    q = shared(bf16, [GROUPS * 64, D], swizzle=swizzle, contiguous=1)
    k = shared(bf16, [STAGES, KEYS, D], swizzle=swizzle, contiguous=2)
    v = shared(bf16, [STAGES, D, KEYS], swizzle=swizzle, contiguous=1)  # as memory has it: D lies side by side
    q_full = barrier(1)
    k_full = barrier(STAGES)
    v_full = barrier(STAGES)
    k_empty = barrier(STAGES, arrivals=GROUPS * 4, starts_complete=True)
    v_empty = barrier(STAGES, arrivals=GROUPS * 4, starts_complete=True)
    steps = ring(TK, KEYS, STAGES)
    work = tiles(B, 1, H, 1, TQ, GROUPS * 64, persistent=False)

    with role("producer", warpgroups=1, registers=24), one_thread():
        for batch, head, m in work:
            q_full[0].expect(q)
            tma.load(Q[batch.index, head.index, m, :], q, q_full[0])
            for step in steps:
                k_empty[step].wait()
                k_full[step].expect(k[step])
                tma.load(K[batch.index, head.index, step, :], k[step], k_full[step])
                v_empty[step].wait()
                v_full[step].expect(v[step])
                tma.load(V[batch.index, head.index, step, :], v[step].T, v_full[step])

    with role("consumer", warpgroups=GROUPS, registers="rest"):
        scores = registers(f32, [GROUPS * 64, KEYS], layout="wgmma")
        powers = registers(bf16, [GROUPS * 64, KEYS], like=scores)
        sums = registers(f32, [GROUPS * 64, D], layout="wgmma")
        most = registers(f32, [GROUPS * 64, 1], like=scores)
        total = registers(f32, [GROUPS * 64, 4], like=scores)  # of each lane, which all get the same factors
        sums[:] = 0.0
        most[:] = -inf
        total[:] = 0.0
        for batch, head, m in work:
            q_full[0].wait(parity=0)
            for step in steps:
                k_full[step].wait()
                wgmma.fence()
                wgmma(q, k[step].T, scores, start=True)
                wgmma.commit()
                wgmma.wait(0)
                k_empty[step].arrive()
                hide(scores, step.start, TK)
                factor = soften(scores, most, total, D**-0.5)
                sums *= factor
                powers[:] = scores
                v_full[step].wait()
                wgmma.fence()
                wgmma(powers, v[step].T, sums)
                wgmma.commit()
                wgmma.wait(0)
                v_empty[step].arrive()
            own = part(warpgroup, 64)
            result = registers(bf16, [GROUPS * 64, D])
            share = registers(f32, most.shape, like=scores)
            share[:] = 1.0 / sum(total, axis=1)
            result[:] = sums * share
            sync("warpgroup")  # the products of all four warps have read the queries: their place is free
            stmatrix(result, q[own, :])
            fence.async_shared()
            sync("warpgroup")
            with one_thread("warpgroup"):
                tma.store(q[own, :], O[batch.index, head.index, m[own], :])
                bulk.commit()
                bulk.wait_read(0)


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
