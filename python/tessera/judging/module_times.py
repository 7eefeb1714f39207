"""How fast a composed module is beside its peers: everything in one process, interleaved, on cold caches, with one random
timed run of ours checked again."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from tessera.common.errors import Error, fail
from tessera.common.randomness import draws
from tessera.judging import peers as peer_table
from tessera.judging import timing
from tessera.judging.module_check import Expected, claimed_by, inactive_reason
from tessera.judging.rewind import Rewind, effects
from tessera.running.compose import ComposedModule
from tessera.running.result_objects import tensors_of
from tessera.tracing.held import Held, cuda_devices, inputs_of


@dataclass
class _Contender:
    name: str
    run: Callable
    ours: ComposedModule | None = None  # to be checked again in a timed run
    samples: list[float] = field(default_factory=list)
    host_ms: float = 0.0
    estimate_ms: float = 0.0
    reason: str = ""
    call: Callable | None = None  # on the first inputs


def _groups(plan: dict) -> list[tuple[str, set[str]]]:
    """Patterns to switch together in the ablation: those of one signature; of one rule when there are many."""

    def grouped(key: str) -> dict[str, set[str]]:
        out: dict[str, set[str]] = {}
        for s in plan["steps"]:
            if s["kind"] in ("kernel", "call"):
                out.setdefault(s["pattern"].get(key) or s["pattern"]["id"], set()).add(s["pattern"]["id"])
        return out

    by = grouped("signature")
    if len(by) > 8:
        by = grouped("rule")
    rules = {s["pattern"]["id"]: s["pattern"].get("rule", "") for s in plan["steps"] if "pattern" in s}
    return [(f"{rules[min(ids)]} {'+'.join(sorted(ids))}", ids) for ids in by.values()]


def _ablations(composed: ComposedModule, plan: dict) -> list[_Contender]:
    groups = _groups(plan)
    out = []
    for label, ids in groups if len(groups) > 1 else []:
        out += [
            _Contender(f"only {label}", m := composed.with_patterns(only=ids), m),
            _Contender(f"all but {label}", m := composed.with_patterns(without=ids), m),
        ]
    return out


def _contenders(held: Held, plan: dict, peers: list[str], leftover: str, ablation: bool):
    composed = held.compose(plan, leftover)
    made, absent = [_Contender("tessera", composed, composed)], {}
    for name in peers:
        peer = peer_table.make(name, held.module, held.settings)
        if isinstance(peer, str):
            absent[name] = peer
        else:
            made.append(_Contender(name, peer))
    if not any(c.name == "eager" for c in made):
        made.append(_Contender("eager", held.module))
    return made + (_ablations(composed, plan) if ablation else []), absent


def _warm(held: Held, contenders: list[_Contender], clock, inputs, absent: dict[str, str]) -> list[_Contender]:
    """Compiles and warms everything; a peer that fails is absent with its reason, ours is an error."""
    ready, rewind = [], Rewind(held, *inputs)
    for c in contenders:
        held.notify(f"preparing {c.name}")
        try:
            with torch.no_grad():
                c.estimate_ms, c.host_ms = clock.warm(_rewound(rewind, c.run, *inputs))
            ready.append(c)
        except Exception as e:
            if c.ours is not None:
                raise
            absent[c.name] = f"{type(e).__name__}: {str(e).strip().splitlines()[0] if str(e).strip() else ''}"[:500]
    return ready


def measure_module(
    held: Held,
    plan: dict,
    peers: list[str],
    leftover: str = "eager",
    seconds: float = 10.0,
    ablation: bool = True,
    seed: int = 0,
) -> dict:
    """Times of the composed module, its peers and its ablations (docs/protocol.md, `measure_module`). Errors: TS0530
    when a claimed pattern was not active, TS0531 when a timed run gave a wrong result."""
    clock = timing.CudaClock(held.device) if held.device.type == "cuda" else timing.HostClock()
    expected = Expected(held, 1)
    sets = [(expected.args, expected.kwargs)] + [
        inputs_of(held, s) for s in range(2, 2 if held.device.type == "cuda" else 5)
    ]
    with held.kept() as before, peer_table.equal_precision(held.precision, convolutions=False):
        contenders, absent = _contenders(held, plan, peers, leftover, ablation)
        contenders = _warm(held, contenders, clock, held.copies(*sets[0]), absent)
        held.notify(f"timing {len(contenders)} ways to run the module, interleaved")
        _interleave(held, contenders, clock, sets, seconds, expected, before, seed)
        compared = [c for c in contenders if (c.ours is None or c is contenders[0]) and not c.reason]
        held.restore(before)  # what the calls counted on in place
        _steadied(held, compared, clock, sets, seconds)
    for c in contenders:
        if c.reason:
            raise fail("TS0531", "measure.wrong_result", f"`{c.name}`, in a timed run: {c.reason}")
    ours = contenders[0].ours
    inactive = inactive_reason(ours, claimed_by(plan))
    if inactive:
        raise fail("TS0530", "measure.inactive", f"what was measured is not what the plan claims: {inactive}")
    return _figures(contenders, absent, ours)


def compare_plans(held: Held, plans: list[dict], leftover: str = "eager", seconds: float = 1.0, seed: int = 0) -> dict:
    """Times of the module under several plans, interleaved, and on CUDA back to back too (docs/protocol.md,
    `compare_plans`). A plan that fails or gives a wrong result has a reason in place of times."""
    clock = timing.CudaClock(held.device) if held.device.type == "cuda" else timing.HostClock()
    expected = Expected(held, 1)
    rows: list[dict] = [{} for _ in plans]
    with held.kept() as before, peer_table.equal_precision(held.precision, convolutions=False):
        ready = []
        for row, plan in zip(rows, plans, strict=True):
            absent: dict[str, str] = {}
            try:
                composed = held.compose(plan, leftover)
                contender = _Contender(f"plan {len(ready)}", composed)
                if _warm(held, [contender], clock, held.copies(expected.args, expected.kwargs), absent):
                    contender.ours = composed
                    ready.append((row, plan, contender))
            except Error as e:
                absent[""] = e.diagnostic["message"]
            row["reason"] = next(iter(absent.values()), "")
        sets = [(expected.args, expected.kwargs)]
        _interleave(held, [c for *_, c in ready], clock, sets, seconds, expected, before, seed)
        right = [(row, c) for row, _, c in ready if not c.reason]
        loaded = _under_load(held, [c for _, c in right], clock, sets[0]) if held.device.type == "cuda" else []
        for (row, _), ms in zip(right, loaded, strict=False):
            row["sustained_ms"] = ms
    for row, plan, c in ready:
        ms, ci95 = timing.median_ci95(c.samples)
        reason = c.reason or inactive_reason(c.ours, claimed_by(plan))
        row |= {"ms": ms, "ci95": ci95, "samples": len(c.samples), "reason": reason}
    return {"times": rows}


def _under_load(held: Held, contenders: list[_Contender], clock: timing.CudaClock, inputs) -> list[float]:
    args, kwargs = held.copies(*inputs)
    rewind = Rewind(held, args, kwargs)
    for c in contenders:
        c.call = _rewound(rewind, c.run, args, kwargs)
    with torch.no_grad():
        return timing.under_load(clock, contenders)


def _rewound(rewind: Rewind, run: Callable, args: tuple, kwargs: dict) -> Callable:
    def call():
        rewind()
        return run(*args, **kwargs)

    return call


def _keeping(run: Callable, args: tuple, kwargs: dict, kept: list) -> Callable:
    return lambda: kept.append(run(*args, **kwargs))


def _interleave(held: Held, contenders, clock, sets, seconds: float, expected: Expected, before, seed: int) -> None:
    share = seconds * 1e3 / max(1, len(contenders))
    rounds = [int(min(timing.MAX_ROUNDS, max(timing.MIN_ROUNDS, share / max(c.estimate_ms, 1e-3)))) for c in contenders]
    chance = random.Random(seed)
    checked = [chance.randrange(n) for n in rounds]
    rewind = Rewind(held, *sets[0])  # of buffers; each call has inputs of its own
    for turn in range(max(rounds, default=0)):
        for c, n, check in zip(contenders, rounds, checked, strict=True):
            if turn >= n or c.reason:
                continue
            judged = c.ours is not None and turn == check and not _draws_by_inductor(held, c.ours)
            inputs = held.copies(*sets[0 if judged else turn % len(sets)])
            rewind()
            if judged:
                held.restore(before)
            with _drawing_as(expected.seed) if judged else contextlib.nullcontext():
                result = _sampled(c, clock, inputs)
            if judged:
                results = tensors_of(result)
                c.reason = expected.judge(results + effects(held, *inputs), held.precision)[1]


def _steadied(held: Held, contenders: list[_Contender], clock, sets, seconds: float) -> None:
    """More samples while a time is noisier than timing.MOST_NOISE, for at most `seconds`: other work on the machine may end."""
    end, turn, rewind = time.perf_counter() + seconds, 0, Rewind(held, *sets[0])
    while not all(timing.reliable(c.samples) for c in contenders) and time.perf_counter() < end:
        for c in contenders:
            inputs = held.copies(*sets[turn % len(sets)])
            rewind()
            _sampled(c, clock, inputs)
        turn += 1


def _sampled(c: _Contender, clock, inputs):
    """Takes one more time of it; returns what the call returned."""
    kept: list = []
    with torch.no_grad():
        c.samples.append(clock.sample(_keeping(c.run, *inputs, kept), c.host_ms))
    return kept[0]


def _draws_by_inductor(held: Held, composed: ComposedModule) -> bool:
    """Its random numbers are others than eager's, so that results cannot be compared."""
    by_inductor = "inductor" in (composed.runner, composed._leftover if composed.runner == "kernels" else "")
    return by_inductor and bool(draws(held.graph))


@contextlib.contextmanager
def _drawing_as(seed: int):
    """Random numbers as those of the results that are expected."""
    with torch.random.fork_rng(devices=cuda_devices()):
        torch.manual_seed(seed)
        yield


def _figures(contenders: list[_Contender], absent: dict[str, str], ours: ComposedModule) -> dict:
    times, ablation = {}, []
    rows = {}
    for c in contenders:
        ms, ci95 = timing.median_ci95(c.samples)
        rows[c.name] = {"ms": ms, "ci95": ci95, "samples": len(c.samples), "host_ms": c.host_ms}
        rows[c.name]["reliable"] = timing.reliable(c.samples)
    for c in contenders:
        row = rows[c.name]
        if c.ours is None or c.ours is ours:
            times[c.name] = row
        else:
            ablation.append(
                {"name": c.name, **row, "speedup": rows["eager"]["ms"] / row["ms"], "active": c.ours.status()["active"]}
            )
    if ablation:
        ablation.append(
            {
                "name": "all",
                **rows["tessera"],
                "speedup": rows["eager"]["ms"] / rows["tessera"]["ms"],
                "active": ours.status()["active"],
            }
        )
    return {"times": times, "absent": absent, "ablation": ablation, "status": ours.status()}
