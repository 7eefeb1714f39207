"""A failing program made small: while it fails in the same way, changes, steps, results, state and arguments are left out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from comparing import runs
from program import Program, names_in
from trial import Failure

_SECONDS = 60.0


def pruned(p: Program) -> Program:
    """Without what nothing reads: steps stay that may write."""
    p = p.copy()
    while True:
        read = {n for s in p.steps for o in s[2] for n in names_in(o)} | set(p.outputs)
        texts = " ".join([*(s[1] for s in p.steps), *(t for _, t in p.state), *(t for _, t in p.setup)])
        texts += " ".join(str(c.get(k, "")) for c in p.changes for k in ("before", "after"))
        steps = [s for s in p.steps if s[0] in read or _writes(s[1])]
        state = [row for row in p.state if row[0] in read or row[0] in texts]
        if len(steps) == len(p.steps) and len(state) == len(p.state):
            return p
        p.steps, p.state = steps, state


def _writes(template: str) -> bool:
    return any(word in template for word in ("_(", "setattr", "__setitem__", "inplace=True", "out=", "batch_norm"))


def _smaller(p: Program):
    """Programs that lack something, the largest steps first."""
    if len(p.changes) > 1:
        for i in range(len(p.changes)):
            q = p.copy()
            q.changes = [p.changes[i]]
            yield q
    if p.changes:
        q = p.copy()
        q.changes = []
        yield q
    for i in range(len(p.outputs) if len(p.outputs) > 1 else 0):
        q = p.copy()
        del q.outputs[i]
        q.form = "tuple" if p.form in ("nested", "single") else p.form
        yield q
    for count in (8, 4, 2, 1):
        for i in range(len(p.steps) - count, -1, -1):
            yield from _without_steps(p, i, count)
    for i in range(len(p.outputs)):
        for name in _operands_of(p, p.outputs[i]):
            q = p.copy()
            q.outputs[i] = name
            yield q
    for i in range(len(p.given)):
        if (
            not any(f"x{i}" in names_in(o) for s in p.steps for o in s[2])
            and f"x{i}" not in p.outputs
            and len(p.given) > 1
        ):
            q = _without_argument(p, i)
            if q:
                yield q
    if p.form != "tuple":
        q = p.copy()
        q.form = "tuple"
        yield q


def _without_steps(p: Program, i: int, count: int):
    """The steps from i on left out; who reads one reads one of its operands instead."""
    gone = p.steps[i : i + count]
    if len(gone) < count:
        return
    for choice in range(3 if count == 1 else 1):
        q = p.copy()
        instead: dict[str, str] = {}
        for s in gone:
            operands = [n for o in s[2] for n in names_in(o)]
            if operands:
                instead[s[0]] = operands[min(choice, len(operands) - 1)]
        for _ in gone:
            instead = {k: instead.get(v, v) for k, v in instead.items()}
        del q.steps[i : i + count]
        for s in q.steps:
            s[2] = [_renamed(o, instead) for o in s[2]]
        q.outputs = [instead.get(o, o) for o in q.outputs]
        yield q


def _renamed(operand, instead: dict):
    if isinstance(operand, list):
        return [_renamed(o, instead) for o in operand]
    return instead.get(operand, operand) if isinstance(operand, str) else operand


def _operands_of(p: Program, name: str) -> list[str]:
    return next(([n for o in s[2] for n in names_in(o)] for s in p.steps if s[0] == name), [])


def _without_argument(p: Program, i: int) -> Program | None:
    q = p.copy()
    if any("args[" in c.get("after", "") for c in q.changes):
        return None
    del q.given[i]
    names = {f"x{j}": f"x{j - 1}" for j in range(i + 1, len(p.given))}
    for s in q.steps:
        s[2] = [_renamed(o, names) for o in s[2]]
    q.outputs = [names.get(o, o) for o in q.outputs]
    return q


def shrunk(
    p: Program, failure: Failure, trial: Callable[[Program], Failure | None], seconds: float = _SECONDS
) -> Program:
    """The smallest program found in time that fails as this one does: in the same symptom, at the same stage and change."""
    end = time.monotonic() + seconds
    best = p
    kept = [c for c in p.changes if c["kind"] == failure.change]
    first = p.copy()
    first.changes = kept[:1]
    for q in (first, p):
        if _fails_alike(q, failure, trial):
            best = q
            break
    start = 0  # after a success the next of its kind is tried; a pass from the beginning without one ends it
    while time.monotonic() < end:
        at = _first_smaller(best, start, end, failure, trial)
        if at is not None:
            start, best = at
        elif start:
            start = 0
        else:
            break
    return best


def _first_smaller(p: Program, start: int, end: float, failure: Failure, trial) -> tuple[int, Program] | None:
    for n, q in enumerate(itertools.islice(_smaller(p), start, None), start):
        if time.monotonic() > end:
            return None
        q = pruned(q)
        if q.outputs and _fails_alike(q, failure, trial):
            return n, q
    return None


def _fails_alike(p: Program, failure: Failure, trial) -> bool:
    if not runs(p.copy()):
        return False
    other = trial(p)
    return (
        other is not None
        and other.kind.split(" of ")[0] == failure.kind.split(" of ")[0]
        and (other.change == failure.change or failure.stage != "refused")
    )
