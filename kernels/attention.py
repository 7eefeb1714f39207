"""O = softmax(scale Q K^T) V for 16-bit elements, as Hopper runs it.

One warpgroup loads by TMA: queries into Q_SLOTS places, keys and values into two rings of STAGES slots. Each of the
others owns 64 queries: their scores, the greatest score and the sum of the powers of each row, and their part of the
result stay in registers, and are corrected when a greater score comes (Dao et al., FlashAttention). The products of a
step are issued before the softmax of the step, so that tensor cores work on P V of the step before while powers are
computed (Shah et al., FlashAttention-3). With TURNS the consumers issue their products one after the other: the softmax
of one overlaps the products of another.

The blocks are persistent: each goes over its share of the tiles of queries, and the rings run on from tile to tile, also
where a mask leaves one tile with fewer steps than the next. With two places for queries those of the next tile are there
when it begins, and a result has as long to leave.

Keys come from the last to the first: what a mask cuts, past the end or past the diagonal, is in the first steps. With a
window, keys before it are in the last steps, and blocks of keys that no query of the tile sees are never loaded.
Heads of keys and values serve H // G heads of queries each.

A mask tensor is loaded by the consumers, two neighbours at a time, to where their scores lie: behind the product of queries and
keys, and before it is awaited, so that the loads' way takes no time of its own. A ring in shared memory would need as much
room as keys do. What waits takes one register for two elements. Heads that share a mask find it in the L2 cache. A row of which every key is hidden
is 0, as PyTorch has it; by the least number of a type, which is finite, keys are hidden beside others alone.
"""

from __future__ import annotations

from tessera.language import *

LOG2_E = 1.4426950408889634


@kernel(means="O[b, h, i, e] = sum(softmax(where((CAUSAL == 0 or j <= i + TK - TQ) and (LEFT < 0 or i + TK - TQ - LEFT <= j) and (RIGHT < 0 or j <= i + TK - TQ + RIGHT), (CAP * tanh((SCALE if SCALE > 0 else D**-0.5) / CAP * sum(Q[b, h, i, d] * K[b, h * G // H, j, d], d)) if CAP > 0 else (SCALE if SCALE > 0 else D**-0.5) * sum(Q[b, h, i, d] * K[b, h * G // H, j, d], d)) + (0 if MASK == 0 else where(M[b, h, i * MASK_ROWS, j], 0, -inf) if MASK == 1 else M[b, h, i * MASK_ROWS, j]), -inf), j, 0 if MASK > 0 else nan) * V[b, h * G // H, j, e], j)")
def attention(
    TQ: index(below=MOST_KEYS),  # queries, and keys: of a head
    TK: index(multiple=MULTIPLE, below=MOST_KEYS),
    H: index(below=MOST_HEADS),  # heads of queries, of keys and values, and batches
    G: index(below=MOST_HEADS),
    B: index(below=1 << 12),
    Q_ROW: index(multiple=8),
    Q_HEAD: index(multiple=8, below=1 << 38),
    Q_BATCH: index(multiple=8, below=1 << 38),
    K_ROW: index(multiple=8),
    K_HEAD: index(multiple=8, below=1 << 38),
    K_BATCH: index(multiple=8, below=1 << 38),
    V_ROW: index(multiple=8),
    V_HEAD: index(multiple=8, below=1 << 38),
    V_BATCH: index(multiple=8, below=1 << 38),
    M_ROW: index(multiple=MULTIPLE, at_least=0),  # of a mask: 0 where it is the same for all
    M_HEAD: index(multiple=MULTIPLE, at_least=0, below=1 << 38),
    M_BATCH: index(multiple=MULTIPLE, at_least=0, below=1 << 38),
    O_ROW: index(multiple=8),
    O_HEAD: index(multiple=8, below=1 << 38),
    O_BATCH: index(multiple=8, below=1 << 38),
    Q: Tensor[ELEMENT, "B", "H", "TQ", D, strides("Q_BATCH", "Q_HEAD", "Q_ROW", 1) if STRIDED == 1 else strides()],
    K: Tensor[ELEMENT, "B", "G", "TK", D, strides("K_BATCH", "K_HEAD", "K_ROW", 1) if STRIDED == 1 else strides()],
    V: Tensor[ELEMENT, "B", "G", "TK", D, strides("V_BATCH", "V_HEAD", "V_ROW", 1) if STRIDED == 1 else strides()],
    M: Tensor[
        b1 if MASK == 1 else MASK_ELEMENT,
        "B",
        "H",
        "TQ" if MASK_ROWS == 1 else 1,
        "TK",
        strides("M_BATCH", "M_HEAD", "M_ROW" if MASK_ROWS == 1 else 16, 1),
    ]
    if MASK > 0
    else None,
    O: Tensor[ELEMENT, "B", "H", "TQ", D, strides("O_BATCH", "O_HEAD", "O_ROW", 1) if STRIDED == 1 else strides(), out],
    ELEMENT: const = bf16,
    D: const = 128,  # of a head: a multiple of 32
    GROUPS: const = 2,  # consumer warpgroups, of 64 queries each: 1, 2 or 3
    KEYS: const = 128,  # keys of a step
    STAGES: const = 2,  # slots of each ring
    Q_SLOTS: const = 2,  # tiles of queries that have a place
    SECTION: const = 8,  # heads that are worked on at a time: their keys and values stay in the cache
    CAUSAL: const = 0,  # 1: query i sees keys up to i + TK - TQ
    LEFT: const = -1,  # of a window: so many keys before i + TK - TQ are seen; below 0: all
    RIGHT: const = -1,  # so many behind it; below 0: all. With CAUSAL: none
    TURNS: const = 1,  # 1: consumers issue their products by turns
    STRIDED: const = 0,  # 1: rows, heads and batches have strides of their own; 0: tensors are dense
    SCALE: const = 0.0,  # of the scores; 0: 1 / sqrt(D)
    CAP: const = 0.0,  # scores s become CAP * tanh(s / CAP); 0: they stay
    MASK: const = 0,  # 1: M tells which keys are seen; 2: it is added to the scores, which are scaled and capped; 0: none
    MASK_ELEMENT: const = "ELEMENT",  # of what is added
    MASK_ROWS: const = 1,  # 1: M has a row for each query; 0: one for all
    MULTIPLE: const = 1,  # of TK and M's strides: masks are read as many elements at a time, 2 at most
    MOST_KEYS: const = 1 << 17,  # what TQ and TK, and H and G, stay below: tiles are counted in 32 bits
    MOST_HEADS: const = 1 << 9,
):
    assert D % 32 == 0 and D <= 256 and KEYS % 16 == 0 and KEYS <= 256, "wgmma makes at most 256 columns"
    assert CAUSAL == 0 or RIGHT < 0, "a causal mask is the right end of a window, with no key behind the diagonal"
    assert TURNS == 0 or GROUPS > 1, "one consumer alone takes no turns"
    assert GROUPS >= 1 and GROUPS <= 3, "the registers of a block are those of three consumers"
    assert MASK_ROWS == 0 or MASK_ROWS == 1, "a mask has a row for each query, or one for all"

    scale = SCALE if SCALE > 0 else D**-0.5
    right = 0 if CAUSAL == 1 else RIGHT
    longest = 1 if right >= 0 and LEFT < 0 else 0  # tiles have the more steps the later they come
    swizzle = 128 if D % 64 == 0 else 64
    q = shared(ELEMENT, [Q_SLOTS, GROUPS * 64, D], swizzle=swizzle, contiguous=2)
    k = shared(ELEMENT, [STAGES, KEYS, D], swizzle=swizzle, contiguous=2)
    v = shared(ELEMENT, [STAGES, D, KEYS], swizzle=swizzle, contiguous=1)  # as memory has it: D lies side by side
    q_full = barrier(Q_SLOTS)
    q_empty = barrier(Q_SLOTS, arrivals=GROUPS, starts_complete=True)
    k_full = barrier(STAGES)
    v_full = barrier(STAGES)
    k_empty = barrier(STAGES, arrivals=GROUPS * 4, starts_complete=True)
    v_empty = barrier(STAGES, arrivals=GROUPS * 4, starts_complete=True)
    turn = named_barrier(GROUPS, threads=256)
    # All tiles of SECTION heads, then the next: dealt back and forth, so that blocks have about as many steps.
    work = tiles(B * H, 1, TQ, GROUPS * 64, group=SECTION, alternate=longest == 1, stages=Q_SLOTS)

    with role("producer", warpgroups=1, registers=24 if GROUPS < 3 else 32), one_thread():
        for pair, m in work:
            batch = pair.index // H
            head = pair.index % H
            shared_head = head * G // H
            queries = longest_first(m, TQ, longest, (B * H - 1) // SECTION - pair.index // SECTION)
            steps = steps_of(queries, TQ, TK, KEYS, STAGES, LEFT, right)
            key_blocks = blocks_up_to_end(steps, queries, TQ, TK, KEYS, LEFT, right)
            q_empty[work.turn].wait()
            q_full[work.turn].expect(q[work.turn])
            tma.load(Q[batch, head, queries, :], q[work.turn], q_full[work.turn])
            for step in steps:
                keys = part(key_blocks - 1 - step.index, KEYS)
                k_empty[step].wait()
                k_full[step].expect(k[step])
                tma.load(K[batch, shared_head, keys, :], k[step], k_full[step])
                v_empty[step].wait()
                v_full[step].expect(v[step])
                tma.load(V[batch, shared_head, keys, :], v[step].T, v_full[step])

    with role("consumer", warpgroups=GROUPS, registers="rest"):
        scores = registers(f32, [GROUPS * 64, KEYS], layout="wgmma")
        powers = registers(ELEMENT, [GROUPS * 64, KEYS], like=scores)
        sums = registers(f32, [GROUPS * 64, D])
        most = registers(f32, [GROUPS * 64, 1], like=scores)
        total = registers(f32, [GROUPS * 64, 4], like=scores)  # of each lane, which all get the same factors
        begin_turns(turn, GROUPS, TURNS)
        for pair, m in work:
            batch = pair.index // H
            head = pair.index % H
            queries = longest_first(m, TQ, longest, (B * H - 1) // SECTION - pair.index // SECTION)
            sums[:] = 0.0
            most[:] = -inf
            total[:] = 0.0
            steps = steps_of(queries, TQ, TK, KEYS, STAGES, LEFT, right)
            key_blocks = blocks_up_to_end(steps, queries, TQ, TK, KEYS, LEFT, right)
            own_first = queries.start + warpgroup * 64
            masked = key_blocks - seen_by_all(own_first, TQ, TK, right) // KEYS
            leaving = key_blocks - cdiv(before_all(own_first + 63, TQ, TK, LEFT), KEYS)
            q_full[work.turn].wait()
            for step in steps:
                first_key = (key_blocks - 1 - step.index) * KEYS
                k_full[step].wait()
                take_turn(turn, TURNS)
                wgmma.fence()
                wgmma(q[work.turn], k[step].T, scores, start=True)
                wgmma.commit()
                if MASK > 0:
                    mask_rows = queries if MASK_ROWS == 1 else part(0, 1)
                    given = load(M[batch, head, mask_rows, part(key_blocks - 1 - step.index, KEYS)], like=scores)
                if step.index > 0:
                    v_full[step - 1].wait()
                    wgmma.fence()
                    wgmma(powers, v[step - 1].T, sums)
                    wgmma.commit()
                    pass_turn(turn, GROUPS, TURNS)
                    wgmma.wait(1)
                else:
                    pass_turn(turn, GROUPS, TURNS)
                    wgmma.wait(0)
                k_empty[step].arrive()
                if Q_SLOTS > 1 and step.index == 0 and work.turn.index > 0:
                    leave(q_empty[work.turn - 1])
                if CAP > 0:
                    scores[:] = tanh_approx(scores * (scale / CAP))
                if MASK == 1:
                    scores[:] = where(given, scores, -inf)
                if MASK == 2:
                    scores[:] = scores * (CAP if CAP > 0 else scale) + given
                if step.index < masked or LEFT >= 0 and leaving <= step.index:
                    mask(scores, queries.start, first_key, TQ, TK, LEFT, right)
                if MASK == 2:
                    factor = soften_added(scores, most, total)
                else:
                    factor = soften(scores, most, total, CAP if CAP > 0 else scale)
                if step.index > 0:
                    wgmma.wait(0)
                    v_empty[step - 1].arrive()
                powers[:] = scores
                if step.index > 0:
                    sums *= factor
            v_full[steps.last].wait()
            wgmma.fence()
            wgmma(powers, v[steps.last].T, sums)
            wgmma.commit()
            wgmma.wait(0)
            v_empty[steps.last].arrive()
            own = part(warpgroup, 64)
            result = registers(ELEMENT, [GROUPS * 64, D])
            share = registers(f32, most.shape, like=scores)
            share[:] = 1.0 / sum(total, axis=1)
            if MASK > 0:
                share[:] = where(most == -inf, 0.0, share)
            result[:] = sums * share
            sync("warpgroup")  # the products of all four warps have read the queries: their place is free
            stmatrix(result, q[work.turn, own, :])
            fence.async_shared()
            sync("warpgroup")
            with one_thread("warpgroup"):
                tma.store(q[work.turn, own, :], O[batch, head, queries[own], :])
                bulk.commit()
            if Q_SLOTS == 1:
                leave(q_empty[work.turn])
        with one_thread("warpgroup"):
            bulk.wait_read(0)  # shared memory has to stay until the last stores have read it
        end_turns(turn, TURNS)


def leave(place):
    """The result that lies where queries were has been read: others may come."""
    with one_thread("warpgroup"):
        bulk.wait_read(0)
        place.arrive()


def longest_first(m, TQ, longest, sections_left):
    """Where the tiles of the last queries have the most steps they begin, and end every second section before the last, so
    that from section to section tiles are about alike."""
    last = cdiv(TQ, m.size) - 1
    return part(last - m.index if sections_left % 2 == 0 else m.index, m.size) if longest == 1 else m


def steps_of(queries, TQ, TK, size, stages, left, right):
    """Steps over the blocks of keys that these queries see; one at least."""
    end = end_of_keys(queries, TQ, TK, right)
    first = before_all(queries.start, TQ, TK, left) // size
    return ring(end if left < 0 else max(1, cdiv(end, size) - first) * size, size, stages)


def blocks_up_to_end(steps, queries, TQ, TK, size, left, right):
    """Blocks of keys up to the last one that these queries see; the steps begin with that one."""
    return steps.turns if left < 0 else cdiv(end_of_keys(queries, TQ, TK, right), size)


def end_of_keys(queries, TQ, TK, right):
    """The end of the keys that these queries see; 1 at least."""
    return max(1, min(TK, queries.start + (queries.size + right) + TK - TQ)) if right >= 0 else TK


def seen_by_all(first_query, TQ, TK, right):
    """The first key past what this query sees; those behind it see more."""
    return max(0, min(TK, first_query + TK - TQ + (1 + right))) if right >= 0 else TK


def before_all(query, TQ, TK, left):
    """Keys before the window of this query."""
    return max(0, query + TK - TQ - left) if left >= 0 else 0


def mask(scores, first_query, first_key, TQ, TK, left, right):
    """Scores of keys past the end, or outside of the window, become -inf."""
    query = first_query + indices(scores, axis=0)
    key = first_key + indices(scores, axis=1)
    end = min(TK, query + TK - TQ + (1 + right)) if right >= 0 else TK
    hidden = end <= key or key < query + TK - TQ - left if left >= 0 else end <= key
    scores[:] = where(hidden, -inf, scores)


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


def soften_added(scores, most, total):
    """`soften` of scores that are scaled, to which numbers are added: log2(e) times the least of float32, by which masks
    hide keys, would be -inf, and a row that has no other number NaN. So differences come first."""
    before = registers(f32, most.shape, like=scores)
    before[:] = most
    most[:] = max(most, amax(scores, axis=1))
    finite = registers(f32, most.shape, like=scores)
    finite[:] = where(most == -inf, 0.0, most)
    factor = registers(f32, most.shape, like=scores)
    factor[:] = exp2_flushed((before - finite) * LOG2_E)
    scores[:] = exp2_flushed((scores - finite) * LOG2_E)
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
