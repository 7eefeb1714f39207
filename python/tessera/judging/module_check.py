"""The composed module against the original: its graph, its kernels in their places, and all of it end to end.

The traced graph evaluated in fp64 is the meaning; the composed module may be off by a multiple of what the original
itself is off at its own precision (verify.py has the budget). What is wrong is traced to the patterns that make it so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch.utils import _pytree as pytree

from tessera.common.errors import fail
from tessera.common.reference import Executor
from tessera.judging import alike, rounded
from tessera.judging import peers as peer_table
from tessera.judging.blame import blamed
from tessera.judging.deviation import larger_errors, reference_errors, reference_of
from tessera.judging.kernel_check import MEANINGS, NARROW, check_kernels
from tessera.judging.rewind import effects
from tessera.judging.rewrite_check import check_rewrites
from tessera.judging.rounding_noise import Noise, unit
from tessera.judging.verify import budget
from tessera.running import modes
from tessera.running.compose import ComposedModule
from tessera.tracing.held import Held, cuda_devices, free, inputs_of, run_module, same
from tessera.tracing.memory import relations

# Where not even the meaning fits into memory: how far results may be from the original's own (relative RMS), which stands
# in for the original's unknown error in the budget; 8 times that for the largest.
_beside_the_original = {"fp32": 1e-5, "tf32": 1e-3, "bf16": 8e-3, "fp16": 1e-3, "fp8": 8e-3}


_NOISY_RUNS = 4
_STEADY = 4.0  # times the error that budgets stand on, and a unit: what a steady result does not move by


class Expected:
    """For one set of inputs: the meaning of every result and changed buffer, and the original's own errors. `form`: "fp64";
    where that does not fit into memory, "fp32" for 16-bit classes; else "eager", the original's own results."""

    def __init__(self, held: Held, seed: int):
        self.seed = seed
        self.args, self.kwargs = inputs_of(held, seed)
        named = {**held.traced.state(), **held.traced.flatten(self.args, self.kwargs)}
        exact = self._exact(held, named, seed)
        args, kwargs = held.copies(self.args, self.kwargs)
        with held.kept():
            eager = run_module(held.module, args, kwargs, seed)
            self.memory = _relations(held, args, kwargs, eager)
            eager = _lasting(held, eager) + [t.clone() for t in effects(held, args, kwargs)]
        exact = eager if exact is None else exact
        if [t.shape for t in exact] != [t.shape for t in eager]:
            raise fail(
                "TS0502",
                "verify.trace_differs",
                "the traced graph does not give what the module gives",
                expected=str([list(t.shape) for t in eager]),
                found=str([list(t.shape) for t in exact]),
            )
        self.references = [reference_of(e, b) for e, b in zip(exact, eager, strict=True)]
        self.baseline = [reference_errors(b, r) for b, r in zip(eager, self.references, strict=True)]
        self.permitted = larger_errors(self.baseline, self._own_cost(held, named, seed))
        if self.form == "eager":
            off = _beside_the_original[held.precision]
            self.permitted = [{**b, "rms": off, "max": 8 * off * b["peak"]} for b in self.baseline]
        self.kinds = [(t.dtype, t.device) for t in eager]
        # Of results that are permitted more (permit_unsteady) the largest relative RMS; None where it was not asked for.
        self.unsteady: float | None = None

    def _exact(self, held: Held, named: dict[str, torch.Tensor], seed: int) -> list[torch.Tensor] | None:
        self.form = "eager"
        given = {k: t if t.is_floating_point() else t.clone() for k, t in named.items()}
        for dtype in MEANINGS if held.precision in NARROW else (torch.float64,):
            try:
                with (
                    torch.no_grad(),
                    torch.random.fork_rng(devices=cuda_devices()),
                    peer_table.equal_precision(held.precision),
                ):
                    torch.manual_seed(seed)
                    made = Executor(held.graph, held.device).run_all(given, dtype)
                self.form = MEANINGS[dtype]
                return _in_order(held, made)
            except torch.OutOfMemoryError:
                made = None
                free(held.device)
        return None

    def _own_cost(self, held: Held, named: dict[str, torch.Tensor], seed: int) -> list[dict]:
        """Errors of the traced graph with rounded operands, where the precision class has such a cost."""
        if not rounded.has_own_cost(held.precision) or self.form == "eager":
            return []
        try:
            with (
                torch.random.fork_rng(devices=cuda_devices()),
                peer_table.equal_precision(held.precision),
                rounded.products(),
            ):
                torch.manual_seed(seed)
                made = Executor(held.graph, held.device).run_all(held.clones(named))
        except torch.OutOfMemoryError:  # attention written out; eager's own error is the stricter measure
            torch.cuda.empty_cache()
            return []
        results = _in_order(held, made)
        return [reference_errors(t, r) for t, r in zip(results, self.references, strict=True)]

    def permit_unsteady(self, held: Held) -> bool:
        """Where the original's own results move with its roundings by much more than it is off, as where experts are chosen by
        scores that are nearly equal: permits that much (rounding_noise.py). Whether there is such a result."""
        permitted = [dict(row) for row in self.permitted]
        for errors in self._noisy(held):
            for more, e, row, (dtype, _) in zip(permitted, errors, self.permitted, self.kinds, strict=True):
                steady = _STEADY * (row["rms"] + unit(dtype, held.precision)) if dtype.is_floating_point else 0.0
                if e["wrong"] or e["rms"] > steady:
                    more.update({key: max(e[key], more[key]) for key in ("rms", "max", "wrong")})
        moved = [new for new, old in zip(permitted, self.permitted, strict=True) if new != old]
        self.permitted, self.unsteady = permitted, max((row["rms"] for row in moved), default=0.0)
        return bool(moved)

    def _noisy(self, held: Held) -> Iterator[list[dict]]:
        """Errors of the original whose roundings are moved, a few times; fewer where memory does not allow."""
        named = {**held.traced.state(), **held.traced.flatten(self.args, self.kwargs)}
        for run in range(_NOISY_RUNS):
            try:
                with (
                    torch.random.fork_rng(devices=cuda_devices()),
                    peer_table.equal_precision(held.precision),
                    Noise(held.precision, held.device, run),
                ):
                    torch.manual_seed(self.seed)
                    made = Executor(held.graph, held.device).run_all(held.clones(named))
            except torch.OutOfMemoryError:
                free(held.device)
                return
            yield [reference_errors(t, r) for t, r in zip(_in_order(held, made), self.references, strict=True)]

    def judge(self, results: list[torch.Tensor], precision: str) -> tuple[list[dict], str]:
        """The errors of each result, and the first reason to refuse them."""
        if len(results) != len(self.references):
            return [], f"{len(results)} results; the original gives {len(self.references)}"
        errors, reason = [], ""
        for i, (out, ref, base, (dtype, device)) in enumerate(
            zip(results, self.references, self.permitted, self.kinds, strict=True)
        ):
            if out.dtype != dtype or out.shape != ref.value.shape or out.device != device:
                ours = f"{out.dtype} {list(out.shape)} on {out.device}"
                return errors, f"result {i} is {ours}; the original's {dtype} {list(ref.value.shape)} on {device}"
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


def _lasting(held: Held, results: list[torch.Tensor]) -> list[torch.Tensor]:
    """The results, copied where they lie in the module's own tensors, which are put back before anything is compared."""
    own = {t.untyped_storage().data_ptr() for t in held.own_tensors()}
    return [t.clone() if t.untyped_storage().data_ptr() in own else t for t in results]


def _in_order(held: Held, made: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Outputs, then what mutations leave behind: the order in which the module's own results are compared."""
    return [made[name] for name in (*held.graph["outputs"], *(m["value"] for m in held.graph.get("mutations", ())))]


def _relations(held: Held, args: tuple, kwargs: dict, results: list[torch.Tensor]) -> list[tuple | None]:
    """Which memory of the arguments, the module's tensors and each other the results share; all of strided ones, for others have none."""
    given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    return relations(results, [*given, *held.own_tensors()])


def _memory_differs(found: list[tuple | None], wanted: list[tuple | None]) -> str:
    for i, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            ours, theirs = ("no memory" if row is None else f"memory ({row[1]} bytes further)" for row in (one, other))
            return f"result {i} shares {ours} with an argument, a tensor of the module or another result; the original's {theirs}"
    return ""


def _check_seed(
    held: Held, composed: ComposedModule, expected: Expected, seed: int
) -> tuple[list[dict], list[dict], str]:
    """(errors of ours, errors of the original, reason) for one set of inputs."""
    state = {k: _copy(t) if isinstance(t, torch.Tensor) else None for k, t in held.module.state_dict().items()}
    args, kwargs = held.copies(expected.args, expected.kwargs)
    with held.kept():
        with peer_table.equal_precision(held.precision):
            results = run_module(composed, args, kwargs, seed)
        memory = _relations(held, args, kwargs, results)
        results = _lasting(held, results) + [t.clone() for t in effects(held, args, kwargs)]
    errors, wrong = expected.judge(results, held.precision)
    if wrong and (expected.unsteady is not None or expected.permit_unsteady(held)):
        errors, wrong = expected.judge(results, held.precision)
    given, changed = held.traced.flatten(expected.args, expected.kwargs), held.written_inputs()
    reasons = [
        f"the input `{name}` was changed"
        for name, t in held.traced.flatten(args, kwargs).items()
        if name not in changed and not same(t, given[name])
    ]
    if differs := _memory_differs(memory, expected.memory):
        reasons.append(differs)
    now = composed.state_dict()
    if list(now) != list(state):
        reasons.append("the state_dict has other names than the original's")
    for name, t in now.items():
        if state.get(name) is not None and not same(t.detach(), state[name].to(t.device)):
            reasons.append(f"the parameter or buffer `{name}` was changed")
            with torch.no_grad():
                t.copy_(state[name])
    reason = "; ".join([*reasons, *([wrong] if wrong else [])])
    return errors, expected.baseline, reason


def _copy(t: torch.Tensor) -> torch.Tensor:
    """To compare with later, and to restore; on the host where the device has no room for it."""
    try:
        return t.detach().clone()
    except torch.OutOfMemoryError:
        return t.detach().cpu()


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
    if plan.get("runner", "kernels") != "kernels":
        return []
    return [s["pattern"]["id"] for s in plan["steps"] if s["kind"] in ("kernel", "call")]


def verify_module(
    held: Held,
    plan: dict,
    seeds: int = 2,
    leftover: str = "eager",
    rewrites: dict | None = None,
    composed: ComposedModule | None = None,
) -> dict:
    """The composed module against fp64 (docs/protocol.md, `verify_module`): its graph against the traced one (`rewrites`:
    the reply of `check_rewrites`, where that was done), each kernel in its place, then all of it end to end. What is wrong
    is named in `culprits`. Errors end to end are missing where an earlier check has found some. `composed`: the module
    that will be handed over, where it is made already."""
    begin = time.perf_counter()
    composed = composed or held.compose(plan, leftover)
    culprits = [culprit(p, "active", p["reason"]) for p in composed.status()["patterns"] if not p["active"]]
    reply: dict = {"ok": True, "reason": "", "culprits": culprits, "seeds": 0}
    if not culprits:
        reply["rewrites"] = rewrites if rewrites is not None else check_rewrites(held, plan["graph"])
        kernels = check_kernels(held, plan)
        reply |= {"kernels": kernels["kernels"], "kernel_seconds": kernels["seconds"]}
        culprits += [culprit(row, "in_place", row["reason"]) for row in kernels["kernels"] if row["ok"] is False]
        if reply["rewrites"]["ok"] is False:
            reply["reason"] = reply["rewrites"]["reason"]
        elif not culprits:
            reply |= end_to_end(held, composed, plan, seeds)
            if not reply["reason"] and held.written_inputs():
                far = 8 * _beside_the_original[held.precision]
                reply["reason"] = alike.reason(held, held.compose(plan, "eager"), far)
    if reply["culprits"]:
        words = [f"{c['pattern']} ({c['rule']}, {c['label']}): {c['reason']}" for c in reply["culprits"]]
        reply["reason"] = reply["reason"] or "; ".join(words)
    free(held.device)
    status = composed.status()
    return reply | {
        "ok": not reply["reason"],
        "active": status["active"],
        "status": status,
        "seconds": time.perf_counter() - begin,
    }


def end_to_end(held: Held, composed: ComposedModule, plan: dict, seeds: int) -> dict:
    """Errors, the reason to refuse the module, and which patterns are to blame."""
    _record(held, composed)
    found = {"rms": 0.0, "max": 0.0}
    base = {"rms": 0.0, "max": 0.0}
    reason, culprits, forms, unsteady = "", [], [], 0.0
    for seed in range(seeds):
        expected = Expected(held, seed)
        forms.append(expected.form)
        errors, baseline, why = _check_seed(held, composed, expected, seed)
        for total, rows in ((found, errors), (base, baseline)):
            for key in total:
                total[key] = max([total[key], *(row[key] for row in rows)])
        unsteady = max(unsteady, expected.unsteady or 0.0)
        if why:
            reason = f"inputs {seed}: {why}"
            culprits = _end_to_end_culprits(held, plan, composed, expected, seed, why)
            break
        del expected  # before the next takes as much
    reason = reason or inactive_reason(composed, claimed_by(plan))
    return {
        "culprits": culprits,
        "reason": reason,
        "form": next((f for f in forms if f != "fp64"), "fp64"),
        "max_error": found["max"],
        "rms_error": found["rms"],
        "baseline_max_error": base["max"],
        "baseline_rms_error": base["rms"],
        "unsteady_rms": unsteady,
        "seeds": len(forms),
    }


def _record(held: Held, composed: ComposedModule) -> None:
    """The two calls in which CUDA graphs of Inductor's are warmed and recorded: what is judged after them is a replay, as almost
    every call of a user is."""
    if composed._leftover != "inductor" or not modes.records(held.settings):
        return
    with held.kept(), peer_table.equal_precision(held.precision):
        for _ in range(2):
            run_module(composed, *held.copies(*inputs_of(held, 0)), 0)


def _end_to_end_culprits(
    held: Held, plan: dict, composed: ComposedModule, expected: Expected, seed: int, why: str
) -> list[dict]:
    """Found with what is left to PyTorch run eagerly: a compiler would take its time for each try."""

    def wrong(off: set[str]) -> str:
        return _check_seed(held, eager.with_patterns(without=off), expected, seed)[2]

    eager = composed if composed._leftover == "eager" else held.compose(plan, "eager")
    if eager is not composed and not wrong(set()):
        return [{"pattern": "", "rule": "", "label": composed._leftover, "check": "leftover", "reason": why}]
    found, certain = blamed(claimed_by(plan), wrong, why)
    steps = {s["pattern"]["id"]: s for s in plan["steps"] if "pattern" in s}
    return [
        culprit(
            {
                "pattern": i,
                "rule": steps[i]["pattern"].get("rule", ""),
                "label": steps[i]["candidate"].get("label", ""),
            },
            "end_to_end" if certain else "suspected",
            reason,
        )
        for i, reason in found
    ]


def culprit(row: dict, check: str, reason: str) -> dict:
    """A pattern that makes the module wrong, and which check says so: `active`, `in_place`, `end_to_end`, or `suspected`
    (wrong once, and not again)."""
    figures = ("inputs", "rms_error", "max_error", "baseline_rms_error", "baseline_max_error", "budget")
    return {
        "pattern": row.get("pattern") or row["id"],
        "rule": row["rule"],
        "label": row["label"],
        "check": check,
        "reason": reason,
        **{key: row[key] for key in figures if key in row},
    }
