"""O = softmax(scale Q K^T) V as kernels/attention.py has it, with a block for each tile of queries: what the checker's tests
prove, and edit. Nothing else runs it.
"""

from __future__ import annotations

from tessera.language import *

LOG2_E = 1.4426950408889634


@kernel(means="O[b, h, i, e] = sum(softmax(where(CAUSAL == 0 or j <= i + TK - TQ, (SCALE if SCALE > 0 else D**-0.5) * sum(Q[b, h, i, d] * K[b, h * G // H, j, d], d), -inf), j) * V[b, h * G // H, j, e], j)")
def attention(
    TQ: index(below=1 << (20 if D <= 128 else 19)),  # queries, and keys: of a head
    TK: index(below=1 << (20 if D <= 128 else 19)),
    H: index(below=1 << 12),  # heads of queries, of keys and values, and batches
    G: index(below=1 << 12),
    B: index(below=1 << 14),
    Q_ROW: index(multiple=8),
    Q_HEAD: index(multiple=8, below=1 << 38),
    Q_BATCH: index(multiple=8, below=1 << 38),
    K_ROW: index(multiple=8),
    K_HEAD: index(multiple=8, below=1 << 38),
    K_BATCH: index(multiple=8, below=1 << 38),
    V_ROW: index(multiple=8),
    V_HEAD: index(multiple=8, below=1 << 38),
    V_BATCH: index(multiple=8, below=1 << 38),
    O_ROW: index(multiple=8),
    O_HEAD: index(multiple=8, below=1 << 38),
    O_BATCH: index(multiple=8, below=1 << 38),
    Q: Tensor[ELEMENT, "B", "H", "TQ", D, strides("Q_BATCH", "Q_HEAD", "Q_ROW", 1) if STRIDED == 1 else strides()],
    K: Tensor[ELEMENT, "B", "G", "TK", D, strides("K_BATCH", "K_HEAD", "K_ROW", 1) if STRIDED == 1 else strides()],
    V: Tensor[ELEMENT, "B", "G", "TK", D, strides("V_BATCH", "V_HEAD", "V_ROW", 1) if STRIDED == 1 else strides()],
    O: Tensor[ELEMENT, "B", "H", "TQ", D, strides("O_BATCH", "O_HEAD", "O_ROW", 1) if STRIDED == 1 else strides(), out],
    ELEMENT: const = bf16,
    D: const = 128,  # of a head: a multiple of 32
    GROUPS: const = 2,  # consumer warpgroups, of 64 queries each: 1, 2 or 3
    KEYS: const = 128,  # keys of a step
    STAGES: const = 2,  # slots of each ring
    CAUSAL: const = 0,  # 1: query i sees keys up to i + TK - TQ
    TURNS: const = 1,  # 1: consumers issue their products by turns
    STRIDED: const = 0,  # 1: rows, heads and batches have strides of their own; 0: tensors are dense
    SCALE: const = 0.0,  # of the scores; 0: 1 / sqrt(D)
):
    assert D % 32 == 0 and D <= 256 and KEYS % 16 == 0 and KEYS <= 256, "wgmma makes at most 256 columns"
    assert TURNS == 0 or GROUPS > 1, "one consumer alone takes no turns"
    assert GROUPS >= 1 and GROUPS <= 3, "the registers of a block are those of three consumers"

    swizzle = 128 if D % 64 == 0 else 64
    q = shared(ELEMENT, [GROUPS * 64, D], swizzle=swizzle, contiguous=1)
    k = shared(ELEMENT, [STAGES, KEYS, D], swizzle=swizzle, contiguous=2)
    v = shared(ELEMENT, [STAGES, D, KEYS], swizzle=swizzle, contiguous=1)  # as memory has it: D lies side by side
    q_full = barrier(1)
    k_full = barrier(STAGES)
    v_full = barrier(STAGES)
    k_empty = barrier(STAGES, arrivals=GROUPS * 4, starts_complete=True)
    v_empty = barrier(STAGES, arrivals=GROUPS * 4, starts_complete=True)
    turn = named_barrier(GROUPS, threads=256)
    work = tiles(B, 1, H, 1, TQ, GROUPS * 64, persistent=False)

    with role("producer", warpgroups=1, registers=24 if GROUPS < 3 else 32), one_thread():
        for batch, head, m in work:
            queries = longest_first(m, TQ, CAUSAL)
            steps = steps_of(queries, TQ, TK, KEYS, STAGES, CAUSAL)
            shared_head = head.index * G // H
            q_full[0].expect(q)
            tma.load(Q[batch.index, head.index, queries, :], q, q_full[0])
            for step in steps:
                keys = part(steps.turns - 1 - step.index, KEYS)
                k_empty[step].wait()
                k_full[step].expect(k[step])
                tma.load(K[batch.index, shared_head, keys, :], k[step], k_full[step])
                v_empty[step].wait()
                v_full[step].expect(v[step])
                tma.load(V[batch.index, shared_head, keys, :], v[step].T, v_full[step])

    with role("consumer", warpgroups=GROUPS, registers="rest"):
        scores = registers(f32, [GROUPS * 64, KEYS], layout="wgmma")
        powers = registers(ELEMENT, [GROUPS * 64, KEYS], like=scores)
        sums = zeros(f32, [GROUPS * 64, D])
        most = registers(f32, [GROUPS * 64, 1], like=scores)
        total = registers(f32, [GROUPS * 64, 4], like=scores)  # of each lane, which all get the same factors
        most[:] = -inf
        total[:] = 0.0
        for batch, head, m in work:
            queries = longest_first(m, TQ, CAUSAL)
            steps = steps_of(queries, TQ, TK, KEYS, STAGES, CAUSAL)
            begin_turns(turn, GROUPS, TURNS)
            q_full[0].wait(parity=0)
            for step in steps:
                first_key = (steps.turns - 1 - step.index) * KEYS
                k_full[step].wait()
                take_turn(turn, TURNS)
                wgmma.fence()
                wgmma(q, k[step].T, scores, start=True)
                wgmma.commit()
                if step.index > 0:
                    wgmma.fence()
                    wgmma(powers, v[step - 1].T, sums)
                    wgmma.commit()
                    pass_turn(turn, GROUPS, TURNS)
                    wgmma.wait(1)
                else:
                    pass_turn(turn, GROUPS, TURNS)
                    wgmma.wait(0)
                k_empty[step].arrive()
                mask(scores, queries.start, first_key, TQ, TK, CAUSAL)
                factor = soften(scores, most, total, SCALE if SCALE > 0 else D**-0.5)
                # Here, for ptxas would wait for the products of V before the softmax, if it met no branch up to there.
                v_full[step].wait()
                if step.index > 0:
                    wgmma.wait(0)
                    v_empty[step - 1].arrive()
                    sums *= factor
                powers[:] = scores
            wgmma.fence()
            wgmma(powers, v[steps.last].T, sums)
            wgmma.commit()
            wgmma.wait(0)
            v_empty[steps.last].arrive()
            end_turns(turn, TURNS)
            own = part(warpgroup, 64)
            result = registers(ELEMENT, [GROUPS * 64, D])
            share = registers(f32, most.shape, like=scores)
            share[:] = 1.0 / sum(total, axis=1)
            result[:] = sums * share
            sync("warpgroup")  # the products of all four warps have read the queries: their place is free
            stmatrix(result, q[own, :])
            fence.async_shared()
            sync("warpgroup")
            with one_thread("warpgroup"):
                tma.store(q[own, :], O[batch.index, head.index, queries[own], :])
                bulk.commit()
                bulk.wait_read(0)


def longest_first(m, TQ, causal):
    """With a mask, the tiles of the last queries have the most steps: they begin first."""
    return part(cdiv(TQ, m.size) - 1 - m.index, m.size) if causal == 1 else m


def steps_of(queries, TQ, TK, size, stages, causal):
    """Steps over the keys that these queries see; one at least."""
    return ring(max(1, min(TK, queries.start + queries.size + TK - TQ)) if causal == 1 else TK, size, stages)


def mask(scores, first_query, first_key, TQ, TK, causal):
    """Scores of keys past the end, or past the diagonal, become -inf. Most steps have none."""
    last_key = first_key + scores.shape[1]
    if TK < last_key or (causal == 1 and first_query + TK - TQ + 1 < last_key):
        key = first_key + indices(scores, axis=1)
        query = first_query + indices(scores, axis=0)
        scores[:] = where(TK <= key or (causal == 1 and query + TK - TQ < key), -inf, scores)


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


def begin_turns(turn, groups, turns):
    """The last consumer gives the first its first turn."""
    if turns == 1 and warpgroup == groups - 1:
        turn[0].arrive()


def take_turn(turn, turns):
    if turns == 1:
        turn[warpgroup].wait()


def pass_turn(turn, groups, turns):
    if turns == 1:
        turn[(warpgroup + 1) % groups].arrive()


def end_turns(turn, turns):
    """The first takes the turn that the last one passed on, so that every arrival has been waited for."""
    if turns == 1 and warpgroup == 0:
        turn[0].wait()
