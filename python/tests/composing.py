"""A small module, hand-written host kernels and the plan that joins them: what the composed module's tests share."""

from __future__ import annotations

import copy
import hashlib
import subprocess
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[2]

LINEAR = r"""
#include <cmath>
#include <cstring>
#include "tessera/kernel.h"
// y[m,n] = f(x[m,k] * wt[k,n] + b[n] (+ r[m,n])); wt is packed k-major. ints: m, n, k. The accumulators live in the workspace.
extern "C" const char* tessera_describe(void) {
  return "{\"abi\":1,\"name\":\"linear\",\"ints\":[\"m\",\"n\",\"k\"],\"tensors\":[],\"arch\":\"host\"}";
}
extern "C" int64_t tessera_workspace_size(const tessera_launch* l) { return l->ints[1] * 4; }
extern "C" const char* tessera_last_error(void) { return "refused by the test"; }
extern "C" int tessera_run(const tessera_launch* l, void* workspace, void*) {
  const int64_t m = l->ints[0], n = l->ints[1], k = l->ints[2];
  if (m == 13) return 1;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return 1;
  const bool residual = l->tensor_count == 5;
  auto t = [&](int i) { return static_cast<float*>(l->tensors[i]); };
  const float *x = t(0), *w = t(1), *b = t(2), *r = residual ? t(3) : nullptr;
  float* y = t(l->tensor_count - 1);
  float* acc = static_cast<float*>(workspace);
  /* damage */
  for (int64_t i = 0; i < m; ++i) {
    std::memcpy(acc, b, n * 4);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) acc[j] += x[i * k + p] * w[p * n + j];
    for (int64_t j = 0; j < n; ++j)
      y[i * n + j] = residual ? acc[j] + r[i * n + j] : 0.5f * acc[j] * (1 + std::erf(acc[j] * 0.70710678f));
  }
  return 0;
}
"""


def compile_kernel(folder: Path, source: str = LINEAR) -> str:
    """The kernel's library, compiled once a test session."""
    made = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:12]}.so"
    if not made.exists():
        cpp = made.with_suffix(".cpp")
        cpp.write_text(source)
        subprocess.run(
            ["g++", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(cpp), "-o", str(made)], check=True
        )
    return str(made)


class Mlp(nn.Module):
    """x + fc2(gelu(fc1(x))), and a call counter kept in a buffer."""

    def __init__(self, width: int = 16, hidden: int = 32):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return self.drop(x + self.fc2(nn.functional.gelu(self.fc1(x))))


class Still(Mlp):
    """Without the counter's writes."""

    scale = 1.0

    def forward(self, x):
        return self.drop(x + self.fc2(nn.functional.gelu(self.fc1(x)))) * self.scale


def still_plan(library: str) -> dict:
    plan = mlp_plan(library)
    plan["graph"]["mutations"], plan["graph"]["meta"]["memory"]["written"] = [], []
    return plan


def value(name, shape, origin="node", target="", strides=None, dtype="float32", **more):
    if strides is None:
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= n
    return {
        "name": name,
        "dtype": dtype,
        "shape": list(shape),
        "strides": list(strides),
        "origin": origin,
        "target": target,
        **more,
    }


def node(name, op, outputs=None, **arguments):
    return {"name": name, "op": f"aten.{op}", "arguments": arguments, "outputs": outputs or [name]}


def t(name):
    return {"value": name}


def kernel_step(library: str, i: str, nodes: list, inputs: list, out: str, shape: list, ints: list) -> dict:
    return {
        "kind": "kernel",
        "pattern": {"id": i, "rule": "gemm", "nodes": nodes, "signature": f"test {i}"},
        "inputs": inputs,
        "outputs": [{"value": out, "dtype": "float32", "shape": shape, "strides": [shape[1], 1]}],
        "candidate": {
            "label": f"hand {i}",
            "realizer": "tile_gemm",
            "kind": "synthesized",
            "config": {},
            "library": library,
            "launch": {"ints": ints},
        },
        "evidence": {"ms": 1.0},
    }


def mlp_graph(rows: int, width: int, hidden: int) -> dict:
    values = [
        value("x", [rows, width], "user_input"),
        value("w1", [hidden, width], "parameter", "fc1.weight"),
        value("b1", [hidden], "parameter", "fc1.bias"),
        value("w2", [width, hidden], "parameter", "fc2.weight"),
        value("b2", [width], "parameter", "fc2.bias"),
        value("count", [], "buffer", "count"),
        value("w1_t", [width, hidden], strides=[1, width]),
        value("w1_p", [width, hidden]),
        value("w2_t", [hidden, width], strides=[1, hidden]),
        value("w2_p", [hidden, width]),
        value("h", [rows, hidden]),
        value("g", [rows, hidden]),
        value("o", [rows, width]),
        value("y", [rows, width]),
        value("count_1", []),
    ]
    nodes = [
        node("count_1", "add.Tensor", self=t("count"), other=1),
        node("w1_t", "t.default", self=t("w1")),
        node("w1_p", "clone.default", self=t("w1_t"), memory_format="contiguous_format"),
        node("w2_t", "t.default", self=t("w2")),
        node("w2_p", "clone.default", self=t("w2_t"), memory_format="contiguous_format"),
        node("h", "linear.default", input=t("x"), weight=t("w1"), bias=t("b1")),
        node("g", "gelu.default", self=t("h"), approximate="none"),
        node("o", "linear.default", input=t("g"), weight=t("w2"), bias=t("b2")),
        node("y", "add.Tensor", self=t("x"), other=t("o"), alpha=1),
    ]
    return {
        "schema": "tessera.graph/1",
        "name": "mlp",
        "device": "cpu",
        "precision": "fp32",
        "meta": {"memory": {"same": [], "written": ["count"], "outputs": [None], "strides": [[width, 1]]}},
        "inputs": ["x", "w1", "b1", "w2", "b2", "count"],
        "outputs": ["y"],
        "values": values,
        "nodes": nodes,
        "mutations": [{"value": "count_1", "target": "count"}],
    }


def mlp_plan(library: str, rows: int = 8, width: int = 16, hidden: int = 32) -> dict:
    """Both linears as kernels with packed weights; the counter stays with ATen."""
    graph = mlp_graph(rows, width, hidden)
    return {
        "schema": "tessera.plan/1",
        "graph": graph,
        "device": "cpu",
        "arch": "host",
        "precision": "fp32",
        "steps": [
            {"kind": "prepack", "nodes": ["w1_t", "w1_p"], "outputs": ["w1_p"]},
            {"kind": "prepack", "nodes": ["w2_t", "w2_p"], "outputs": ["w2_p"]},
            {"kind": "aten", "node": "count_1"},
            kernel_step(library, "p01", ["h", "g"], ["x", "w1_p", "b1"], "g", [rows, hidden], [rows, hidden, width]),
            kernel_step(
                library, "p02", ["o", "y"], ["g", "w2_p", "b2", "x"], "y", [rows, width], [rows, width, hidden]
            ),
        ],
        "leftover": [{"node": "count_1", "op": "aten.add.Tensor", "reason": "no rule takes it"}],
    }


def plan_of_trace(traced, library: str) -> dict:
    """The same two kernels on a graph that the tracer made of an Mlp, as the engine's plan would have it: the patterns' nodes
    read what the kernels read."""
    graph = copy.deepcopy(traced.graph)
    by_target = {v.get("target"): v["name"] for v in graph["values"]}
    linear = [n for n in graph["nodes"] if n["op"] == "aten.linear.default"]
    gelu = next(n for n in graph["nodes"] if n["op"] == "aten.gelu.default")
    last = next(
        n for n in graph["nodes"] if n["op"] == "aten.add.Tensor" and n["arguments"]["other"] == t(linear[1]["name"])
    )
    x = linear[0]["arguments"]["input"]["value"]
    shapes = {v["name"]: v["shape"] for v in graph["values"]}
    rows, (hidden, width) = shapes[x][0], shapes[by_target["fc1.weight"]]
    steps, packing = [], []
    for i in (1, 2):
        w = by_target[f"fc{i}.weight"]
        n, k = shapes[w]
        graph["values"] += [value(f"w{i}_t", [k, n], strides=[1, k]), value(f"w{i}_p", [k, n])]
        packing += [
            node(f"w{i}_t", "t.default", self=t(w)) | {"prepack": True},
            node(f"w{i}_p", "clone.default", self=t(f"w{i}_t"), memory_format="contiguous_format") | {"prepack": True},
        ]
        steps.append({"kind": "prepack", "nodes": [f"w{i}_t", f"w{i}_p"], "outputs": [f"w{i}_p"]})
        given = linear[i - 1]["arguments"]
        operands = {"self": given["bias"], "mat1": given["input"], "mat2": t(f"w{i}_p")}
        linear[i - 1] |= {"op": "aten.addmm.default", "arguments": {**operands, "beta": 1, "alpha": 1}}
    graph["nodes"] = packing + graph["nodes"]

    steps += [
        kernel_step(
            library,
            "p01",
            [linear[0]["name"], gelu["name"]],
            [x, "w1_p", by_target["fc1.bias"]],
            gelu["name"],
            shapes[gelu["name"]],
            [rows, hidden, width],
        ),
        kernel_step(
            library,
            "p02",
            [linear[1]["name"], last["name"]],
            [gelu["name"], "w2_p", by_target["fc2.bias"], x],
            last["name"],
            shapes[last["name"]],
            [rows, width, hidden],
        ),
    ]
    return {
        "schema": "tessera.plan/1",
        "graph": graph,
        "device": "cpu",
        "arch": "host",
        "precision": "fp32",
        "steps": steps,
        "leftover": [],
    }


def same(composed, reference, x) -> None:
    with torch.no_grad():
        a, b = composed(x), reference(x)
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(composed.count, reference.count)


def kinds(composed) -> dict[str, int]:
    return {e["kind"]: e["count"] for e in composed.status()["fallbacks"]}


def in_place(m):
    with torch.no_grad():
        m.fc2.weight[0, 0] += 5
