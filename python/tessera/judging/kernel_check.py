"""Every kernel of a plan in its place: what it makes of the very inputs that it gets there, against its pattern in fp64.

The plan is run step by step: kernels and library calls as candidates are (verify.py: guard bands, poisoned outputs,
inputs that must stay, errors within the budget of the same nodes run eagerly on the same inputs), everything else by
PyTorch. Twice: on the inputs and parameters that the module was given, and on redrawn inputs and perturbed parameters. A
kernel that occurs at several places is checked at each. The live parameters are only read.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Iterable, Mapping

import torch

from tessera.common.arguments import tensor_arguments
from tessera.common.errors import Error, fail
from tessera.common.reference import Executor
from tessera.judging import peers as peer_table
from tessera.judging.guarded import Guarded
from tessera.judging.perturbed import Perturbed, perturbed_inputs
from tessera.judging.problem import Problem, dtype_of
from tessera.judging.runners import make_runner
from tessera.judging.verify import run_and_check
from tessera.tracing.held import Held, cuda_devices, free, inputs_of

_sets = (("given", 0), ("perturbed", 1))
# fp64; where that does not fit into memory, fp32 for the classes whose roundings it resolves.
MEANINGS, NARROW = {torch.float64: "fp64", torch.float32: "fp32"}, ("bf16", "fp16", "fp8")
_own_aten = "aten"  # the library function that is the pattern's own nodes


def check_kernels(held: Held, plan: dict) -> dict:
    """{"kernels": a row for each kernel and call step, the worse of both runs, "seconds"} (docs/protocol.md,
    `verify_module`)."""
    begin = time.perf_counter()
    rows: dict[int, dict] = {}
    for name, seed in _sets:
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=cuda_devices()),
            peer_table.equal_precision(held.precision),
        ):
            torch.manual_seed(seed)
            reached = set()
            try:
                for at, row in _Walk(held, plan, _tensors(held, name, seed)).rows(name):
                    rows[at] = _worse(rows.get(at), row)
                    reached.add(at)
            except torch.OutOfMemoryError as e:
                for at in _checked_steps(plan) - reached:
                    row = _about(plan["steps"][at], name) | _skipped(str(e).splitlines()[0][:200])
                    rows[at] = _worse(rows.get(at), row)
        free(held.device)
        if any(row["ok"] is False for row in rows.values()):
            break
    return {"kernels": [rows[at] for at in sorted(rows)], "seconds": time.perf_counter() - begin}


def _tensors(held: Held, name: str, seed: int) -> Mapping[str, torch.Tensor]:
    args, kwargs = inputs_of(held, seed)
    given, state = held.traced.flatten(args, kwargs), held.traced.state()
    if name == "given":
        return ChainMap(given, state)
    return ChainMap(perturbed_inputs(given, held.graph, seed), Perturbed(state, held.graph, seed))


def _checked_steps(plan: dict) -> set[int]:
    return {at for at, step in enumerate(plan["steps"]) if not _by_nodes(step)}


def _skipped(reason: str) -> dict:
    return {"ok": None, "form": "skipped", "kind": "out_of_memory", "reason": reason}


def _about(step: dict, name: str) -> dict:
    return {
        "pattern": step["pattern"]["id"],
        "rule": step["pattern"].get("rule", ""),
        "label": step["candidate"].get("label", ""),
        "outputs": [o["value"] for o in step["outputs"]],
        "inputs": name,
    }


def _worse(old: dict | None, new: dict) -> dict:
    """The row to keep of a step's two runs: a breach, then what was not checked, then the larger share of the budget."""
    if old is None:
        return new
    order = {False: 2, None: 1, True: 0}

    def rank(row: dict):
        return order[row["ok"]], row.get("share_of_budget", 0.0)

    return max(old, new, key=rank)


class _Walk:
    """A plan executed in order. A value lives from the step that makes it to the last that reads it; what no step makes
    (views that only kernels read) is computed from the graph's nodes where it is wanted."""

    def __init__(self, held: Held, plan: dict, given: Mapping[str, torch.Tensor]):
        self.held, self.graph, self.steps, self.given = held, plan["graph"], plan["steps"], given
        self.executor = Executor(self.graph, held.device)
        self.producer = {v: n for n in self.graph["nodes"] for v in n["outputs"] if v}
        self.inputs = set(self.graph["inputs"])
        self.values: dict[str, torch.Tensor] = {}
        self.last = self._last_readers()

    def _wanted(self, step: dict) -> list[str]:
        """What must be there before the step (of a kernel), or what the step makes (of nodes)."""
        if step["kind"] == "aten":
            return [v for v in self.executor.nodes[step["node"]]["outputs"] if v]
        if step["kind"] == "prepack":
            return list(step["outputs"])
        return [o["value"] for o in step["outputs"]] if _is_own_aten(step) else list(step["inputs"])

    def _chain(self, names: Iterable[str], have) -> tuple[list[str], set[str]]:
        """The nodes that make these values from what is there, and which of that they read."""
        pending, nodes, leaves = list(names), {}, set()
        while pending:
            name = pending.pop()
            if name in have:
                leaves.add(name)
            elif name not in self.inputs:
                node = self.producer.get(name)
                if node is None:
                    raise fail("TS0214", "plan.malformed", f"the plan needs the value `{name}`, which nothing produces")
                if node["name"] not in nodes:
                    nodes[node["name"]] = node
                    pending += tensor_arguments(node)
        return list(nodes), leaves

    def _last_readers(self) -> dict[str, int]:
        have, last = set(), {}
        for i, step in enumerate(self.steps):
            _, leaves = self._chain(self._wanted(step), have)
            made = self._wanted(step) if _by_nodes(step) else [o["value"] for o in step["outputs"]]
            last.update(dict.fromkeys([*leaves, *made], i))
            have.update(made)
        return last

    def _get(self, names: list[str]) -> list[torch.Tensor]:
        nodes, _ = self._chain(names, self.values)
        made = self.executor.run(nodes, ChainMap(self.values, self.given), list(dict.fromkeys(names)))
        return [made[name] for name in names]

    def rows(self, name: str):
        """(position, row) of every kernel and call step."""
        for i, step in enumerate(self.steps):
            if _by_nodes(step):
                names = self._wanted(step)
                self.values.update(zip(names, self._get(names), strict=True))
            else:
                row, outputs = self._check(step, name)
                # Steps behind a wrong kernel get what they should.
                outputs = self._get(row["outputs"]) if outputs is None else outputs
                self.values.update(zip(row["outputs"], outputs, strict=True))
                yield i, row
            for value in [v for v in self.values if self.last.get(v, i) <= i]:
                del self.values[value]

    def _check(self, step: dict, name: str) -> tuple[dict, list[torch.Tensor] | None]:
        """The step's row, and what it made where that is right."""
        row = _about(step, name)
        problem = Problem(
            self.graph,
            {**step["pattern"], "inputs": step["inputs"], "outputs": row["outputs"]},
            str(self.held.device),
            self.held.precision,
        )
        actual = self._get(step["inputs"])
        for meaning in MEANINGS if self.held.precision in NARROW else (torch.float64,):
            problem.meaning = meaning
            try:
                found, outputs = _judge(problem, step["candidate"], actual, name)
                return {**row, "form": MEANINGS[meaning], **found}, outputs
            except torch.OutOfMemoryError as e:
                reason = str(e).splitlines()[0][:200]
            except Error as e:
                reason = e.diagnostic["message"]
                if e.diagnostic["code"] != "TS0513":
                    return {**row, "ok": False, "form": MEANINGS[meaning], "kind": "malformed", "reason": reason}, None
            free(self.held.device)
        return row | _skipped(reason), None


def _judge(
    problem: Problem, candidate: dict, actual: list[torch.Tensor], name: str
) -> tuple[dict, list[torch.Tensor] | None]:
    """What the row says of a step on these inputs, and what it made where that is right."""
    data = problem.dataset_of(
        name, dict(_sets)[name], [_guarded(v, t) for v, t in zip(problem.inputs, actual, strict=True)]
    )
    try:
        outputs, errors, breach = run_and_check(problem, data, make_runner(candidate, problem))
    except Error as e:
        outputs, errors, breach = [], [], {"kind": "launch_failed", "reason": e.diagnostic["message"]}
    found = {"ok": breach is None, "kind": "", "reason": "", **_figures(errors), **(breach or {})}
    return found, outputs if breach is None else None


def _guarded(value: dict, t: torch.Tensor) -> Guarded:
    """The tensor's content in the graph's layout, between guard bands."""
    made = Guarded(value["shape"], value["strides"], dtype_of(value), t.device)
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in value["strides"])  # elements that share their memory
    made.tensor[once].copy_(t[once])
    made.remember()
    return made


def _figures(errors: list[dict]) -> dict:
    """Of the output with the largest share of its budget."""
    if not errors:
        return {}

    def share(e: dict) -> float:
        return max((e[k] / e["budget"][k] if e["budget"][k] else 0.0) for k in ("rms", "max"))

    e = max(errors, key=share)
    return {
        "rms_error": e["rms"],
        "max_error": e["max"],
        "baseline_rms_error": e["baseline"]["rms"],
        "baseline_max_error": e["baseline"]["max"],
        "budget": e["budget"],
        "share_of_budget": share(e),
    }


def _is_own_aten(step: dict) -> bool:
    return step["kind"] == "call" and step["candidate"]["call"]["function"] == _own_aten


def _by_nodes(step: dict) -> bool:
    return step["kind"] in ("aten", "prepack") or _is_own_aten(step)
