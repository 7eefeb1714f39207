"""Shared by the graph tests: the engine's graph_tool, and comparing a graph's canonical form with the module in fp64."""

from __future__ import annotations

import copy
import glob
import json
import os
import subprocess

import pytest
import torch
from tessera.common.reference import Executor
from tessera.running import plan_graph
from tessera.running.straight import Straight
from tessera.tracing.tracer import Traced, trace_module

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tool() -> str:
    given = os.environ.get("TESSERA_GRAPH_TOOL")
    found = [given] if given else sorted(glob.glob(f"{ROOT}/build*/src/graph_tool"), key=os.path.getmtime)
    if not found:
        pytest.skip("graph_tool is not built: ninja -C build graph_tool")
    return found[-1]


def run_tool(command: str, graph: dict) -> str:
    done = subprocess.run([tool(), command], input=json.dumps(graph), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def canonical(graph: dict) -> dict:
    return json.loads(run_tool("canonicalize", graph))


def ops(graph: dict) -> list[str]:
    """The short op names of all nodes: "linear", "gelu", ..."""
    return [n["op"].split(".")[1] for n in graph["nodes"]]


def check(
    module: torch.nn.Module, *args, canonical_too: bool = True, as_if_on: str = "", **kwargs
) -> tuple[Traced, dict]:
    """Traces and compares with the module itself in float64: the graph as traced, and its canonical form (`as_if_on`:
    that for another device)."""
    traced = trace_module(module, args, kwargs)
    expected = torch.utils._pytree.tree_leaves(_in_double(module, args, kwargs))
    graphs = [traced.graph]
    if canonical_too:
        device = traced.graph["device"]
        graphs.append(canonical({**traced.graph, "device": as_if_on or device}) | {"device": device})
    results = []
    for graph in graphs:
        values = Executor(graph).run_all({**traced.flatten(args, kwargs), **traced.state()}, torch.float64)
        got = torch.utils._pytree.tree_leaves(traced.unflatten([values[name] for name in graph["outputs"]]))
        assert len(got) == len(expected)
        # The module's own conversions to float32 are exact only in the executor; constants are written with 8 digits.
        _same(got, expected, 1e-5)
        _same(got, results[0] if results else got, 3e-8)
        results.append(got)
    _same(_planned(traced, graphs[-1], args, kwargs), _planned(traced, traced.graph, args, kwargs), 2e-4)
    return traced, graphs[-1]


def _planned(traced: Traced, graph: dict, args: tuple, kwargs: dict) -> list:
    """The graph as a plan without kernels: prepacked values first, then every call by PyTorch in the module's own types."""
    steps = [
        {"kind": "prepack", "nodes": [n["name"]], "outputs": n["outputs"]}
        if n.get("prepack")
        else {"kind": "aten", "node": n["name"]}
        for n in graph["nodes"]
    ]
    built = plan_graph.build({"graph": {**graph, "mutations": []}, "steps": steps})
    values = {**traced.flatten(args, kwargs), **traced.state()}
    with torch.no_grad():
        if built.pack is not None:
            packed = built.pack(*[values[name] for name in built.pack_feeds])
            values |= dict(zip(built.packed, packed, strict=True))
        for value, parts in built.neighbours.items():
            values[value] = torch.cat([values[name] for name in parts])
        feeds = [values[name] for name in built.feeds]
        results, straight = list(built.completed(built.main)(*feeds)), built.completed(Straight(built.main))
        for _ in range(3):  # interpreted, then as it was written down
            _same(list(straight(*[t.clone() for t in feeds])), results, 0)
        _same(list(straight(*feeds)), results, 0)
        return results


def _same(got: list, expected: list, tolerance: float) -> None:
    for g, e in zip(got, expected, strict=True):
        if isinstance(e, torch.Tensor):
            assert g.shape == e.shape
            torch.testing.assert_close(g, e, rtol=tolerance, atol=tolerance, check_dtype=False, equal_nan=True)


def _in_double(module, args, kwargs):
    def double(x):
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    with torch.no_grad():
        exact = copy.deepcopy(module).double()
        for m in exact.modules():  # constants that are no buffers
            for name, value in list(vars(m).items()):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    setattr(m, name, value.double())
        return exact(*[double(a) for a in args], **{k: double(v) for k, v in kwargs.items()})


def module(forward, **state):
    """A module with this forward(self, ...) and these submodules, parameters, buffers or plain values."""

    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
                    self.register_buffer(name, value)
                else:
                    setattr(self, name, value)

    Written.forward = forward
    return Written()


X = torch.randn(4, 6, 16, generator=torch.Generator().manual_seed(0))
