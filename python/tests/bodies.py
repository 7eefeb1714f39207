"""The meaning of discovered bodies: every body of a discovery, evaluated in float64 over strided views, against the same
nodes run by ATen. What the body of a rule computes is said in src/rules/<rule>_reference.py. Shared by the tests of rules
and of decoder blocks."""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import os
import re
import subprocess
from pathlib import Path

import torch
from tessera.common.reference import Executor
from tessera.tracing.tracer import Traced, trace_module
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]


def tool() -> str | None:
    if "TESSERA_RULES_TOOL" in os.environ:
        return os.environ["TESSERA_RULES_TOOL"]
    found = sorted(ROOT.glob("build*/src/rules/tools/rules_tool"), key=lambda p: p.stat().st_mtime)
    return str(found[-1]) if found else None


def run_tool(form: str, graph: dict) -> str:
    done = subprocess.run([tool(), form], input=json.dumps(graph), capture_output=True, text=True, check=True)
    return done.stdout


# --- the meaning of a body ------------------------------------------------------------------------------------------


# Functions that no ATen op is by itself: their meaning in torch. The others say which op they are.
FUNCTIONS = {
    "cube": lambda x: x * x * x,
    "fma": lambda x, y, z: x * y + z,
    "add": torch.add,
    "sub": torch.sub,
    "div": torch.div,
    "pow": torch.pow,
    "round": torch.round,
    "gelu_erf": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "clamp": torch.clamp,
    "elu": lambda x, alpha: F.elu(x, alpha.item()),
    "leaky_relu": lambda x, slope: torch.where(x > 0, x, x * slope),
    "softplus": lambda x, beta, threshold: F.softplus(x, beta.item(), threshold.item()),
    "softshrink": lambda x, width: F.softshrink(x, width.item()),
    "hardshrink": lambda x, width: F.hardshrink(x, width.item()),
    "threshold": lambda x, t, value: F.threshold(x, t.item(), value.item()),
    "where": lambda c, x, y: torch.where(c != 0, x, y),
    "div_floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    **{
        f"round_{name}": functools.partial(torch.Tensor.to, dtype=getattr(torch, name))
        for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")
    },
}


@functools.cache
def functions() -> dict:
    """Every function by its name, of tensors and numbers in float64; truth values are 1 and 0."""
    named = json.loads(subprocess.run([tool(), "functions"], capture_output=True, text=True, check=True).stdout)
    ops = {name: getattr(torch.ops.aten, op.removeprefix("aten.")) for name, op in named.items()}
    assert not ops.keys() & FUNCTIONS.keys()
    return {name: in_float64(f) for name, f in (ops | FUNCTIONS).items()}


def in_float64(f):
    return lambda *a: f(*[torch.as_tensor(x, dtype=torch.float64) for x in a]).double()


def evaluate(dag: str, operands: list[torch.Tensor]) -> list[torch.Tensor]:
    """The results of a printed DAG: `$0 = call; ...; result; result`."""
    scope = {**functions(), "inf": math.inf, "nan": math.nan}
    text = re.sub(r"%(\d+)", r"o[\1]", dag).replace("$", "t")
    scope["o"] = operands
    results = []
    for part in text.split(";"):
        name, is_let, value = part.strip().partition(" = ")
        if is_let:
            scope[name] = eval(value, scope)  # noqa: S307 - text of our own tool
        else:
            results.append(torch.as_tensor(eval(name, scope), dtype=torch.float64))  # noqa: S307
    return results


class Storage:
    """The pattern's tensors as flat storages in float64."""

    def __init__(self, pattern: dict, types: dict, values: dict[str, torch.Tensor]):
        self.flat = []
        for name in pattern["inputs"]:
            # In the layout that the graph says, into which the composed module copies where ATen made another.
            self.flat.append(self._empty(*types[name]))
            self.flat[-1].as_strided(*types[name]).copy_(values[name])
        for name in pattern["outputs"]:
            self.flat.append(self._empty(*types[name]))

    @staticmethod
    def _empty(shape: list[int], strides: list[int]) -> torch.Tensor:
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        return torch.full((extent,), math.nan, dtype=torch.float64)

    def view(self, v: dict) -> torch.Tensor:
        return self.flat[v["tensor"]].as_strided(v["shape"], v["strides"], v["offset"])

    def write(self, v: dict, value: torch.Tensor) -> None:
        assert torch.isnan(self.view(v)).all(), "written twice"
        self.view(v).copy_(value.expand(v["shape"]))


@functools.cache
def meaning_of(rule: str):
    """The function of a body and a Storage that src/rules/<rule>_reference.py defines: it computes the outputs."""
    path = ROOT / "src" / "rules" / f"{rule}_reference.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run


def check(module: nn.Module, *args: torch.Tensor, traced: Traced | None = None) -> dict:
    """Every pattern of the module's discovery means what its nodes compute. Returns the patterns by rule."""
    torch.manual_seed(1)
    traced = traced or trace_module(module.eval(), args)
    out = subprocess.run(
        [tool(), "canonical"], input=json.dumps(traced.graph), capture_output=True, text=True, check=True
    )
    graph = json.loads(out.stdout)
    discovery = json.loads(run_tool("json", traced.graph))
    executor = Executor(graph, "cpu")
    leaves = {**traced.flatten(args), **traced.state()}
    types = {v["name"]: (v["shape"], v["strides"]) for v in graph["values"]}
    made = [v for n in graph["nodes"] for v in n["outputs"]]
    everything = executor.run(list(executor.nodes), leaves, [*made, *leaves], torch.float64)
    for p in discovery["patterns"]:
        assert 0 < p["floor_ms"] <= p["unfused_ms"] * 1.001 and 0 <= p["gain_ms"] <= p["unfused_ms"], p["summary"]
        assert 0 < p["min_bytes"] <= p["unfused_bytes"] * 1.001, p["summary"]
        storage = Storage(p, types, everything)
        inputs = {n: everything[n] for n in p["inputs"] + p["constants"]}
        reference = executor.run(p["subgraph"], inputs, p["outputs"], torch.float64)
        meaning_of(p["rule"])(p["body"], storage)
        for i, name in enumerate(p["outputs"]):
            shape, strides = types[name]
            got = storage.flat[len(p["inputs"]) + i].as_strided(shape, strides)
            want = reference[name].double()
            same = torch.allclose(got, want, rtol=1e-9, atol=1e-9, equal_nan=True)
            assert same, f"{p['id']} {p['summary']}: {name} is off by {(got - want).abs().max()}"
    rules = {}
    for p in discovery["patterns"]:
        rules.setdefault(p["rule"], []).append(p)
    rules["_"] = discovery
    return rules
