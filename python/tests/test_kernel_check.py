"""Kernels checked where they stand in a module: what end-to-end errors hide is found there, and who is to blame."""

from __future__ import annotations

import pytest
import torch
from composing import compile_kernel
from tessera.common.reference import Executor
from tessera.judging.blame import blamed
from tessera.judging.kernel_check import check_kernels
from tessera.judging.module_check import end_to_end, verify_module
from tessera.judging.problem import Problem
from tessera.tracing.held import hold
from torch import nn

ROWS, WIDTH = 64, 48

# y = x * w + b in bf16. ints: rows, width.
AFFINE = r"""
#include <cstring>
#include "tessera/kernel.h"
static float load(const uint16_t* p) { uint32_t u = uint32_t(*p) << 16; float f; std::memcpy(&f, &u, 4); return f; }
static uint16_t store(float f) { uint32_t u; std::memcpy(&u, &f, 4); return (u + 0x7FFF + ((u >> 16) & 1)) >> 16; }
extern "C" const char* tessera_describe(void) {
  return "{\"abi\":1,\"name\":\"affine\",\"ints\":[\"rows\",\"width\"],\"tensors\":[],\"arch\":\"host\"}";
}
extern "C" int64_t tessera_workspace_size(const tessera_launch*) { return 0; }
extern "C" const char* tessera_last_error(void) { return "refused by the test"; }
extern "C" int tessera_run(const tessera_launch* l, void*, void*) {
  static int calls = 0;
  ++calls;
  auto in = [&](int i) { return static_cast<uint16_t*>(l->tensors[i]); };
  for (int64_t r = 0; r < l->ints[0]; ++r)
    for (int64_t c = 0; c < l->ints[1]; ++c) {
      float w = load(in(1) + c), b = load(in(2) + c), x = load(in(0) + r * l->ints[1] + c), y = x * w + b;
      /* damage */
      in(3)[r * l->ints[1] + c] = store(y);
    }
  return 0;
}
"""


class Branches(nn.Module):
    """x + (first(x) + second(x)) / 32: what goes wrong in a branch hardly shows in the sum. Both are as at initialization."""

    def __init__(self):
        super().__init__()
        self.w1, self.w2 = (nn.Parameter(torch.ones(WIDTH)) for _ in range(2))
        self.b1, self.b2 = (nn.Parameter(torch.zeros(WIDTH)) for _ in range(2))

    def forward(self, x):
        return x + (torch.addcmul(self.b1, x, self.w1) + torch.addcmul(self.b2, x, self.w2)) / 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def held():
    torch.manual_seed(0)
    return hold(Branches().eval(), (torch.randn(ROWS, WIDTH),), {}, "bf16")


def plan_of(held, *libraries: str) -> dict:
    """A kernel for each addcmul, of the same signature."""
    graph = held.graph
    x = next(v["name"] for v in graph["values"] if v["origin"] == "user_input")
    branches = [n for n in graph["nodes"] if n["op"].startswith("aten.addcmul")]
    steps = []
    for n in graph["nodes"]:
        if n not in branches:
            steps.append({"kind": "aten", "node": n["name"]})
            continue
        i = branches.index(n)
        operands = n["arguments"]
        out = n["outputs"][0]
        steps.append(
            {
                "kind": "kernel",
                "pattern": {"id": f"p0{i + 1}", "rule": "pointwise", "nodes": [n["name"]], "signature": "affine"},
                "inputs": [x, operands["tensor2"]["value"], operands["self"]["value"]],
                "outputs": [{"value": out, "dtype": "bfloat16", "shape": [ROWS, WIDTH], "strides": [WIDTH, 1]}],
                "candidate": {
                    "label": f"affine {i}",
                    "realizer": "tile_pointwise",
                    "kind": "synthesized",
                    "library": libraries[i % len(libraries)],
                    "launch": {"ints": [ROWS, WIDTH]},
                },
                "evidence": {"ms": 1.0},
            }
        )
    return {"schema": "tessera.plan/1", "graph": graph, "precision": "bf16", "steps": steps, "leftover": []}


def damaged(folder, damage: str = "") -> str:
    assert "/* damage */" in AFFINE
    return compile_kernel(folder, AFFINE.replace("/* damage */", damage))


def test_right_kernels(held, folder):
    before = {k: v.clone() for k, v in held.module.state_dict().items()}
    r = verify_module(held, plan_of(held, damaged(folder)))
    assert r["ok"] and not r["culprits"] and r["active"] == ["p01", "p02"], r
    assert [(k["pattern"], k["ok"], k["form"]) for k in r["kernels"]] == [("p01", True, "fp64"), ("p02", True, "fp64")]
    assert all(0 < k["rms_error"] <= k["budget"]["rms"] and k["baseline_rms_error"] > 0 for k in r["kernels"]), r
    assert r["rewrites"]["ok"] and 0 < r["kernel_seconds"] < r["seconds"]
    assert all(torch.equal(v, before[k]) for k, v in held.module.state_dict().items())


WRONG = {
    "one_percent": ("y *= (r + c) % 2 ? 1.01f : 0.99f;", "relative RMS"),
    "weight_ignored": ("y = x + b;", "relative RMS"),
    "bias_dropped": ("y = x * w;", "relative RMS"),
    "one_element": ("if (r == 5 && c == 7) y *= 1.1f;", "largest error"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernel_at_one_place(held, folder, name):
    """End to end it passes: in bf16, behind a residual connection, at initialization."""
    damage, why = WRONG[name]
    plan = plan_of(held, damaged(folder), damaged(folder, damage))
    assert not end_to_end(held, held.compose(plan, "eager"), plan, 2)["reason"]
    r = verify_module(held, plan)
    assert not r["ok"] and "p02 (pointwise, affine 1)" in r["reason"], r
    (found,) = r["culprits"]
    assert (found["pattern"], found["rule"], found["check"]) == ("p02", "pointwise", "in_place")
    assert why in found["reason"] or "RMS" in found["reason"], found
    share = max(found["rms_error"] / found["budget"]["rms"], found["max_error"] / found["budget"]["max"])
    assert share > 1, found
    if name in ("weight_ignored", "bias_dropped"):
        assert found["inputs"] == "perturbed"


def test_every_place_is_checked(held, folder):
    wrong = damaged(folder, WRONG["one_percent"][0])
    r = verify_module(held, plan_of(held, wrong))
    assert [c["pattern"] for c in r["culprits"]] == ["p01", "p02"] and not r["ok"]


def test_a_place_wired_wrongly(held, folder):
    """The kernel is right; at its second place it is given the first one's weight, which is equal at initialization."""
    plan = plan_of(held, damaged(folder))
    first, second = (s for s in plan["steps"] if s["kind"] == "kernel")
    second["inputs"] = [second["inputs"][0], first["inputs"][1], second["inputs"][2]]
    assert not end_to_end(held, held.compose(plan, "eager"), plan, 2)["reason"]
    r = verify_module(held, plan)
    assert not r["ok"] and [c["pattern"] for c in r["culprits"]] == ["p02"] and "are given" in r["reason"], r


def test_what_only_shows_end_to_end_is_bisected(held, folder):
    """Right in the first two calls, which are those of the check in its place."""
    lazy = damaged(folder, "if (calls > 2) y = 0;")
    r = verify_module(held, plan_of(held, damaged(folder), lazy))
    assert not r["ok"] and [(c["pattern"], c["check"]) for c in r["culprits"]] == [("p02", "end_to_end")], r
    assert "inputs 0" in r["reason"] and r["rms_error"] > 0, r


def test_a_parameter_that_a_kernel_changes_is_restored(held, folder):
    before = {k: v.clone() for k, v in held.module.state_dict().items()}
    later = damaged(folder, "if (calls > 2) in(2)[0] = 0x4000;")
    r = verify_module(held, plan_of(held, damaged(folder), later))
    assert not r["ok"] and "`b2` was changed" in r["reason"] and r["culprits"][0]["pattern"] == "p02", r
    assert all(torch.equal(v, before[k]) for k, v in held.module.state_dict().items())


def no_memory_for(monkeypatch, dtypes):
    run = Problem.run

    def limited(self, tensors, dtype):
        if dtype in dtypes:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")
        return run(self, tensors, dtype)

    monkeypatch.setattr(Problem, "run", limited)


def test_little_memory(held, folder, monkeypatch):
    wrong = plan_of(held, damaged(folder), damaged(folder, WRONG["one_percent"][0]))
    no_memory_for(monkeypatch, {torch.float64})
    rows = check_kernels(held, wrong)["kernels"]
    assert [(k["ok"], k["form"]) for k in rows] == [(True, "fp32"), (False, "fp32")], rows
    no_memory_for(monkeypatch, {torch.float64, torch.float32})
    rows = check_kernels(held, wrong)["kernels"]
    assert [(k["ok"], k["form"], k["kind"]) for k in rows] == [(None, "skipped", "out_of_memory")] * 2, rows
    assert "does not fit" in rows[0]["reason"]


def test_no_memory_for_the_module_itself(held, folder, monkeypatch):
    def full(self, *args):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")

    monkeypatch.setattr("tessera.judging.kernel_check._Walk._check", full)
    rows = check_kernels(held, plan_of(held, damaged(folder)))["kernels"]
    assert [(k["pattern"], k["ok"], k["form"]) for k in rows] == [("p01", None, "skipped"), ("p02", None, "skipped")]


@pytest.mark.parametrize("form, lacking", [("fp32", [torch.float64]), ("eager", [torch.float64, torch.float32])])
def test_end_to_end_with_little_memory(held, folder, monkeypatch, form, lacking):
    run = Executor.run_all

    def limited(self, inputs, dtype=None):
        if dtype in lacking:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")
        return run(self, inputs, dtype)

    monkeypatch.setattr(Executor, "run_all", limited)
    monkeypatch.setattr("tessera.judging.module_check.check_kernels", lambda *a: {"kernels": [], "seconds": 0.0})
    r = verify_module(held, plan_of(held, damaged(folder)))
    assert r["ok"] and r["form"] == form and r["rewrites"]["ok"] is (True if form == "fp32" else None), r
    r = verify_module(held, plan_of(held, damaged(folder), damaged(folder, "y *= 3;")))
    assert not r["ok"] and [c["pattern"] for c in r["culprits"]] == ["p02"], r


def test_blamed():
    ids = [f"p{i}" for i in range(9)]

    def wrong_with(bad: set[str]):
        return lambda off: ", ".join(sorted(bad - off))

    for bad in ({"p0"}, {"p8"}, {"p3"}, {"p2", "p5", "p7"}, set(ids)):
        found, certain = blamed(ids, wrong_with(bad), "wrong")
        assert certain and {i for i, _ in found} == bad
    assert blamed(ids, lambda off: "also without", "wrong") == ([], True)
    together = blamed(ids, lambda off: "" if {"p2", "p6"} & off else "wrong", "wrong")
    assert together[0] in ([("p6", "wrong")], [("p2", "wrong")]) and together[1]
    calls = iter(["", "wrong"])
    found, certain = blamed(ids, lambda off: next(calls, ""), "wrong once")
    assert not certain or found, found
    found, certain = blamed(ids, lambda off: "", "wrong once")
    assert not certain and [i for i, _ in found] == ids
