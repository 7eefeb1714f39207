"""The road without a compiler: a module traced, its graph rewritten by the engine, and the plan whose steps run op by op."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python")]

from tessera.tracing.held import Held, hold  # noqa: E402


def tool() -> str | None:
    given = os.environ.get("TESSERA_GRAPH_TOOL")
    found = [given] if given else sorted(glob.glob(f"{ROOT}/build*/src/graph_tool"), key=os.path.getmtime)
    return found[-1] if found else None


def canonical(graph: dict) -> dict:
    done = subprocess.run(
        [tool(), "canonicalize"], input=json.dumps(graph), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"graph_tool ends with {done.returncode}: {done.stderr[:2000]}")
    return json.loads(done.stdout)


def plan_of(graph: dict) -> dict:
    """Prepacked values first, as the engine's plans have them, then every node by PyTorch."""
    steps = [
        {"kind": "prepack", "nodes": [n["name"]], "outputs": n["outputs"]}
        if n.get("prepack")
        else {"kind": "aten", "node": n["name"]}
        for n in graph["nodes"]
    ]
    head = {"schema": "tessera.plan/1", "device": graph["device"], "arch": "host", "precision": graph["precision"]}
    return {**head, "graph": graph, "steps": steps, "leftover": []}


class Way:
    """A composed module of the rewritten graph (`rewritten`), or of the graph as it was traced."""

    def __init__(self, module: torch.nn.Module, args: list, rewritten: bool = True):
        with torch.no_grad():
            self.held: Held = hold(module, tuple(args), {})
            self.graph = canonical(self.held.graph) if rewritten else self.held.graph
            self.composed = self.held.compose(plan_of(self.graph), "eager")

    def exact(self, first: int, count: int, targets: str) -> str:
        """How the results from `first` on, and what is written to state named by `targets`, are computed: `exact` by the very
        nodes that were traced, without a product: they equal eager's bit for bit; `rewritten` otherwise; `product` with one,
        whose zeros may have the other sign as well."""
        traced = {n["name"]: n for n in self.held.graph["nodes"]}
        made = {name: n for n in self.graph["nodes"] for name in n["outputs"]}
        changes = [m["value"] for m in self.graph["mutations"] if m["target"].startswith(targets)]
        wanted = [*self.graph["outputs"][first : first + count], *changes]
        done: set[str] = set()
        how = "exact"
        while wanted:
            name = wanted.pop()
            if name in done or name not in made:
                continue
            done.add(name)
            node, then = made[name], traced.get(made[name]["name"])
            if _sums(node["op"]):
                return "product"
            if then is None or then["op"] != node["op"] or then["arguments"] != node["arguments"]:
                how = "rewritten"
            wanted += _read(node["arguments"])
        return how

    def kernels(self) -> dict[int, int]:
        return {}

    def fallbacks(self) -> dict[str, int]:
        return {e["kind"]: e["count"] for e in self.composed.status()["fallbacks"]}


def _sums(op: str) -> bool:
    """Products and what is made of them: torch.export takes some apart, and libraries add up in an order that memory decides."""
    return any(
        word in op
        for word in (
            "mm",
            "matmul",
            "linear",
            "conv",
            "batch_norm",
            "attention",
            "einsum",
            ".mv.",
            ".dot.",
            "lstm",
            "gru",
            "rnn",
        )
    )


def _read(arguments) -> list[str]:
    if isinstance(arguments, dict):
        return (
            [arguments["value"]]
            if isinstance(arguments.get("value"), str)
            else [n for a in arguments.values() for n in _read(a)]
        )
    return [n for a in arguments for n in _read(a)] if isinstance(arguments, list) else []
