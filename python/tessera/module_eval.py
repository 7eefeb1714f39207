"""The composed module against the original: right end to end, and how fast beside its peers.

Right: the traced graph evaluated in fp64 is the meaning; the composed module may be off by a multiple of what the
original itself is off at its own precision (tessera.verify has the budget). Fast: everything in one process,
interleaved, on cold caches, with one random timed run of ours checked again.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera import peers as peer_table
from tessera import rounded, timing
from tessera.compose import ComposedModule, composed_of
from tessera.errors import Error, fail
from tessera.guards import hooked
from tessera.precision import cast, readable
from tessera.problem import _reference, larger_errors
from tessera.reference import Executor
from tessera.tracer import Traced, trace_module
from tessera.verify import budget, reference_errors

_kept_distinct = 16  # a tensor with at most so many values is a mask, a flag or a table of positions


@dataclass
class Held:
    """A live module with the call that it was traced with."""

    module: nn.Module
    args: tuple
    kwargs: dict
    traced: Traced
    path: str = ""
    notify: Callable[[str], None] = lambda text: None
    resizable: bool = True  # whether other inputs of the same module make sense: not for a captured graph

    @property
    def graph(self) -> dict:
        return self.traced.graph

    @property
    def precision(self) -> str:
        return self.graph["precision"]

    @property
    def device(self) -> torch.device:
        return torch.device(self.graph["device"])

    def compose(self, plan: dict, leftover: str, **options) -> ComposedModule:
        return composed_of(self.traced, self.args, self.kwargs, plan, leftover=leftover, **options)


def hold(
    module: nn.Module, args: tuple, kwargs: dict, precision: str | None = None, path: str = "", name: str | None = None
) -> Held:
    """Traces a module and keeps what evaluation needs. `precision` converts the module in place (tracer.trace_module)."""
    if precision is not None:
        args, kwargs = cast(module, tuple(args), dict(kwargs), precision)
    if where := hooked(module):
        raise fail(
            "TS0015",
            "input.hooks",
            f"{where} has forward hooks, which kernels that take its place would skip",
            expected="a module without forward hooks",
            helps=[
                "remove them (handle.remove()) and optimize again",
                "hooks that are registered afterwards are honoured: the original runs while there are any",
            ],
        )
    traced = trace_module(module, args, kwargs, precision, name)
    describe_device(traced.graph)
    return Held(module, tuple(args), dict(kwargs), traced, path)


def describe_device(graph: dict) -> None:
    """Adds to a graph's meta what the core chooses an architecture by."""
    device = torch.device(graph["device"])
    if device.type == "cuda":
        graph["meta"]["capability"] = list(torch.cuda.get_device_capability(device))
        graph["meta"]["device_name"] = torch.cuda.get_device_name(device)


# --- inputs --------------------------------------------------------------------------------------------------------


def redraw(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """The same elements in another order: any distribution and any range of indices is kept. Tensors with an order of
    their own are left as they are: masks, positions, tables of few values."""
    if seed == 0 or tensor.numel() < 2 or tensor.dtype == torch.bool:
        return tensor.clone()
    flat = readable(tensor.detach()).flatten()
    if not bool(flat.isfinite().all()) or len(flat[: 1 << 16].unique()) <= _kept_distinct:
        return tensor.clone()
    if not tensor.is_floating_point() and bool((flat[1:] >= flat[:-1]).all()):
        return tensor.clone()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(flat.numel(), generator=generator).to(flat.device)
    return torch.empty_like(tensor).copy_(flat[order].view(tensor.shape))


def inputs_of(held: Held, seed: int) -> tuple[tuple, dict]:
    return pytree.tree_map_only(torch.Tensor, lambda t: redraw(t, seed), (held.args, held.kwargs))


# --- right ---------------------------------------------------------------------------------------------------------


def _snapshot(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone() for name, t in module.named_buffers()}


def _restore(module: nn.Module, before: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, t in module.named_buffers():
            if name in before and not _same(t, before[name]):
                t.copy_(before[name])


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = readable(a), readable(b)
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _run(module, args: tuple, kwargs: dict, seed: int) -> list[torch.Tensor]:
    with torch.no_grad(), torch.random.fork_rng(devices=_cuda_devices()):
        torch.manual_seed(seed)
        result = module(*args, **kwargs)
    return [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def _cuda_devices() -> list[int]:
    return [torch.cuda.current_device()] if torch.cuda.is_available() else []


def _copies(args: tuple, kwargs: dict):
    return pytree.tree_map_only(torch.Tensor, lambda t: torch.empty_like(t).copy_(t), (args, kwargs))


def _changed(held: Held) -> tuple[list[str], set[str]]:
    """The buffers, and the inputs by value name, that the module itself changes in place."""
    targets = [m["target"] for m in held.graph.get("mutations", ())]
    return (
        [t for t in targets if not t.startswith("input:")],
        {t.removeprefix("input:") for t in targets if t.startswith("input:")},
    )


def _effects(module: nn.Module, buffers: list[str]) -> list[torch.Tensor]:
    live = dict(module.named_buffers())
    return [live[name].detach().clone() for name in buffers]


class _Expected:
    """For one set of inputs: the fp64 meaning of every result and changed buffer, and the original's own errors."""

    def __init__(self, held: Held, seed: int):
        self.args, self.kwargs = inputs_of(held, seed)
        self.buffers, self.changed_inputs = _changed(held)
        named = {**held.traced.state(), **held.traced.flatten(self.args, self.kwargs)}
        before = _snapshot(held.module)
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=_cuda_devices()),
            peer_table.equal_precision(held.precision),
        ):
            torch.manual_seed(seed)
            made = Executor(held.graph, held.device).run_all({k: t.clone() for k, t in named.items()}, torch.float64)
        exact = _in_order(held, made)
        args, kwargs = _copies(self.args, self.kwargs)
        eager = _run(held.module, args, kwargs, seed)
        eager += _effects(held.module, self.buffers)
        _restore(held.module, before)
        if [t.shape for t in exact] != [t.shape for t in eager]:
            raise fail(
                "TS0502",
                "verify.trace_differs",
                "the traced graph does not give what the module gives",
                expected=str([list(t.shape) for t in eager]),
                found=str([list(t.shape) for t in exact]),
            )
        self.references = [_reference(e, b) for e, b in zip(exact, eager, strict=True)]
        self.baseline = [reference_errors(b, r) for b, r in zip(eager, self.references, strict=True)]
        self.permitted = larger_errors(self.baseline, self._own_cost(held, named, seed))
        self.dtypes = [t.dtype for t in eager]

    def _own_cost(self, held: Held, named: dict[str, torch.Tensor], seed: int) -> list[dict]:
        """Errors of the traced graph with rounded operands, where the precision class has such a cost."""
        if not rounded.has_own_cost(held.precision):
            return []
        try:
            with (
                torch.random.fork_rng(devices=_cuda_devices()),
                peer_table.equal_precision(held.precision),
                rounded.products(),
            ):
                torch.manual_seed(seed)
                made = Executor(held.graph, held.device).run_all({k: t.clone() for k, t in named.items()})
        except torch.OutOfMemoryError:  # attention written out; eager's own error is the stricter measure
            torch.cuda.empty_cache()
            return []
        results = _in_order(held, made)
        return [reference_errors(t, r) for t, r in zip(results, self.references, strict=True)]

    def judge(self, results: list[torch.Tensor], precision: str) -> tuple[list[dict], str]:
        """The errors of each result, and the first reason to refuse them."""
        if len(results) != len(self.references):
            return [], f"{len(results)} results; the original gives {len(self.references)}"
        errors, reason = [], ""
        for i, (out, ref, base, dtype) in enumerate(
            zip(results, self.references, self.permitted, self.dtypes, strict=True)
        ):
            if out.dtype != dtype or out.shape != ref.value.shape:
                return (
                    errors,
                    f"result {i} is {out.dtype} {list(out.shape)}; the original's {dtype} {list(ref.value.shape)}",
                )
            e = reference_errors(out, ref)
            errors.append(e)
            allowed = budget(precision, out.dtype, base)
            for key in ("rms", "max"):
                if not e[key] <= allowed[key] and not reason:
                    reason = (
                        f"result {i}: {key} error {e[key]:.3g}, allowed {allowed[key]:.3g} "
                        f"(the original, or its precision: {base[key]:.3g})"
                    )
            for key, words in (
                ("wrong", "integers differ"),
                ("non_finite", "values are not finite where they must be"),
                ("missing_non_finite", "values are finite where they must not be"),
            ):
                if e[key] > base[key] and not reason:
                    reason = f"result {i}: {e[key]} {words}"
        return errors, reason


def _in_order(held: Held, made: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Outputs, then what mutations leave in buffers: the order in which the module's own results are compared."""
    results = [made[name] for name in held.graph["outputs"]]
    return results + [made[m["value"]] for m in held.graph.get("mutations", ()) if not m["target"].startswith("input:")]


def _check_seed(held: Held, composed: ComposedModule, seed: int) -> tuple[list[dict], list[dict], str]:
    """(errors of ours, errors of the original, reason) for one set of inputs."""
    expected = _Expected(held, seed)
    before = _snapshot(held.module)
    state = {k: t.detach().clone() for k, t in held.module.state_dict().items()}
    args, kwargs = _copies(expected.args, expected.kwargs)
    with peer_table.equal_precision(held.precision):
        results = _run(composed, args, kwargs, seed)
    results += _effects(held.module, expected.buffers)
    _restore(held.module, before)
    errors, wrong = expected.judge(results, held.precision)
    given = held.traced.flatten(expected.args, expected.kwargs)
    reasons = [
        f"the input `{name}` was changed"
        for name, t in held.traced.flatten(args, kwargs).items()
        if name not in expected.changed_inputs and not _same(t, given[name])
    ]
    now = composed.state_dict()
    if list(now) != list(state):
        reasons.append("the state_dict has other names than the original's")
    reasons += [
        f"the parameter or buffer `{name}` was changed"
        for name, t in now.items()
        if name in state and not _same(t.detach(), state[name])
    ]
    reason = "; ".join([*reasons, *([wrong] if wrong else [])])
    return errors, expected.baseline, reason


def inactive_reason(composed: ComposedModule, claimed: list[str]) -> str:
    """Why a claimed pattern did not run in the calls so far; empty when all did."""
    status = composed.status()
    for p in status["patterns"]:
        if p["id"] in claimed and not p["active"]:
            return f"pattern {p['id']} ({p['rule']}) is inactive: {p['reason']}"
    if status["served"] != status["calls"]:
        reasons = "; ".join(f["reason"] for f in status["fallbacks"])
        return f"the original ran in {status['calls'] - status['served']} of {status['calls']} calls: {reasons}"
    return ""


def claimed_by(plan: dict) -> list[str]:
    return [s["pattern"]["id"] for s in plan["steps"] if s["kind"] in ("kernel", "call")]


def verify_module(held: Held, plan: dict, seeds: int = 2, leftover: str = "eager") -> dict:
    """The composed module against fp64 on several inputs (docs/protocol.md, `verify_module`)."""
    composed = held.compose(plan, leftover)
    found = {"rms": 0.0, "max": 0.0}
    base = {"rms": 0.0, "max": 0.0}
    reason = ""
    for seed in range(seeds):
        errors, baseline, why = _check_seed(held, composed, seed)
        for total, rows in ((found, errors), (base, baseline)):
            for key in total:
                total[key] = max([total[key], *(row[key] for row in rows)])
        reason = reason or (f"inputs {seed}: {why}" if why else "")
        if reason:
            break
    reason = reason or inactive_reason(composed, claimed_by(plan))
    status = composed.status()
    return {
        "ok": not reason,
        "reason": reason,
        "max_error": found["max"],
        "rms_error": found["rms"],
        "baseline_max_error": base["max"],
        "baseline_rms_error": base["rms"],
        "active": status["active"],
        "status": status,
        "seeds": seeds,
    }


# --- fast ----------------------------------------------------------------------------------------------------------


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
        peer = peer_table.make(name, held.module)
        if isinstance(peer, str):
            absent[name] = peer
        else:
            made.append(_Contender(name, peer))
    if not any(c.name == "eager" for c in made):
        made.append(_Contender("eager", held.module))
    return made + (_ablations(composed, plan) if ablation else []), absent


def _warm(held: Held, contenders: list[_Contender], clock, inputs, absent: dict[str, str]) -> list[_Contender]:
    """Compiles and warms everything; a peer that fails is absent with its reason, ours is an error."""
    ready = []
    for c in contenders:
        held.notify(f"preparing {c.name}")
        try:
            with torch.no_grad():
                c.estimate_ms, c.host_ms = clock.warm(lambda c=c: c.run(*inputs[0], **inputs[1]))
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
    before = _snapshot(held.module)
    expected = _Expected(held, 1)
    sets = [(expected.args, expected.kwargs)] + [
        inputs_of(held, s) for s in range(2, 2 if held.device.type == "cuda" else 5)
    ]
    with peer_table.equal_precision(held.precision):
        contenders, absent = _contenders(held, plan, peers, leftover, ablation)
        contenders = _warm(held, contenders, clock, _copies(*sets[0]), absent)
        held.notify(f"timing {len(contenders)} ways to run the module, interleaved")
        _interleave(held, contenders, clock, sets, seconds, expected, before, seed)
    _restore(held.module, before)
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
    before = _snapshot(held.module)
    expected = _Expected(held, 1)
    rows: list[dict] = [{} for _ in plans]
    with peer_table.equal_precision(held.precision):
        ready = []
        for row, plan in zip(rows, plans, strict=True):
            absent: dict[str, str] = {}
            try:
                composed = held.compose(plan, leftover)
                contender = _Contender(f"plan {len(ready)}", composed)
                if _warm(held, [contender], clock, _copies(expected.args, expected.kwargs), absent):
                    contender.ours = composed
                    ready.append((row, plan, contender))
            except Error as e:
                absent[""] = e.diagnostic["message"]
            row["reason"] = next(iter(absent.values()), "")
        sets = [(expected.args, expected.kwargs)]
        _interleave(held, [c for *_, c in ready], clock, sets, seconds, expected, before, seed)
        right = [(row, c) for row, _, c in ready if not c.reason]
        loaded = _under_load([c for _, c in right], clock, sets[0]) if held.device.type == "cuda" else []
        for (row, _), ms in zip(right, loaded, strict=False):
            row["sustained_ms"] = ms
    _restore(held.module, before)
    for row, plan, c in ready:
        ms, ci95 = timing.median_ci95(c.samples)
        reason = c.reason or inactive_reason(c.ours, claimed_by(plan))
        row |= {"ms": ms, "ci95": ci95, "samples": len(c.samples), "reason": reason}
    return {"times": rows}


def _under_load(contenders: list[_Contender], clock: timing.CudaClock, inputs) -> list[float]:
    args, kwargs = _copies(*inputs)
    for c in contenders:
        c.call = functools.partial(c.run, *args, **kwargs)
    with torch.no_grad():
        return timing.under_load(clock, contenders)


def _keeping(run: Callable, args: tuple, kwargs: dict, kept: list) -> Callable:
    return lambda: kept.append(run(*args, **kwargs))


def _interleave(held: Held, contenders, clock, sets, seconds: float, expected: _Expected, before, seed: int) -> None:
    share = seconds * 1e3 / max(1, len(contenders))
    rounds = [int(min(timing.MAX_ROUNDS, max(timing.MIN_ROUNDS, share / max(c.estimate_ms, 1e-3)))) for c in contenders]
    chance = random.Random(seed)
    checked = [chance.randrange(n) for n in rounds]
    for turn in range(max(rounds, default=0)):
        for c, n, check in zip(contenders, rounds, checked, strict=True):
            if turn >= n or c.reason:
                continue
            judged = c.ours is not None and turn == check
            args, kwargs = _copies(*sets[0 if judged else turn % len(sets)])
            if judged:
                _restore(held.module, before)
            kept: list = []
            with torch.no_grad():
                c.samples.append(clock.sample(_keeping(c.run, args, kwargs, kept), c.host_ms))
            if judged:
                results = [t for t in pytree.tree_leaves(kept[0]) if isinstance(t, torch.Tensor)]
                c.reason = expected.judge(results + _effects(held.module, expected.buffers), held.precision)[1]


def _figures(contenders: list[_Contender], absent: dict[str, str], ours: ComposedModule) -> dict:
    times, ablation = {}, []
    rows = {}
    for c in contenders:
        ms, ci95 = timing.median_ci95(c.samples)
        rows[c.name] = {"ms": ms, "ci95": ci95, "samples": len(c.samples), "host_ms": c.host_ms}
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


__all__ = ["Error", "Held", "compare_plans", "hold", "measure_module", "verify_module"]
