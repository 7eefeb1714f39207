"""Verification sees memory that results share or do not, and what is written to arguments, parameters and buffers; inputs drawn anew
are one object where the held ones are."""

from __future__ import annotations

import copy

import graph_tools
import pytest
import torch
from tessera.judging import alike
from tessera.judging.module_check import Expected, verify_module
from tessera.running.memory_guard import MemoryGuard
from tessera.tracing.captured import hold_graph
from tessera.tracing.held import hold, inputs_of
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.no_grad():
        yield


def plan_of(held, change=lambda graph: None) -> dict:
    graph = copy.deepcopy(held.graph)
    change(graph)
    return {"graph": graph, "steps": [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]]}


def writes(self, x, y):
    self.w.mul_(0.5)
    self.b.add_(x)
    old = x.clone()
    x.mul_(2)
    return old.view(-1), x[0], y.relu()


@pytest.fixture
def held():
    torch.manual_seed(0)
    m = graph_tools.module(writes, b=torch.randn(4, 4), w=nn.Parameter(torch.randn(4))).eval()
    return hold(m, (torch.randn(4, 4), torch.randn(4, 4)), {})


def test_right_and_left_as_it_was(held):
    before = [t.clone() for t in held.own_tensors()]
    reply = verify_module(held, plan_of(held))
    assert reply["ok"], reply["reason"]
    assert all(torch.equal(a, b) for a, b in zip(held.own_tensors(), before, strict=True))


def _memory(row, value):
    def change(graph):
        graph["meta"]["memory"]["outputs"][row] = value

    return change


def _less_written(name):
    def change(graph):
        graph["mutations"] = [m for m in graph["mutations"] if m["target"] != name]

    return change


def _another_value(graph):
    (m,) = (m for m in graph["mutations"] if m["target"] == "input:x")
    m["value"] = "y"


@pytest.mark.parametrize(
    "change, why",
    [
        (_memory(1, None), "result 1 shares no memory"),
        (_memory(2, {"of": "y", "same": True}), "result 2"),
        (_less_written("w"), "result 3"),
        (_less_written("b"), "result 4"),
        (_another_value, "result 1"),  # which looks at the input
    ],
)
def test_wrong(held, change, why):
    reply = verify_module(held, plan_of(held, change), rewrites={"ok": True, "reason": ""})
    assert not reply["ok"] and why in reply["reason"], reply["reason"]


def reads_after_it_writes(self, x, y):
    x.mul_(2)
    return x + y


def test_calls_with_arguments_that_are_one_tensor_or_overlap(monkeypatch):
    held = hold(graph_tools.module(reads_after_it_writes).eval(), (torch.randn(4, 4), torch.randn(4, 4)), {})
    assert verify_module(held, plan_of(held))["ok"]
    # Without guards of memory the graph takes the calls, which reads `y` as it was before the write.
    monkeypatch.setattr(MemoryGuard, "identity", lambda *_: None)
    monkeypatch.setattr(MemoryGuard, "overlap", lambda *_: None)
    assert "`x` and `y` one tensor" in verify_module(held, plan_of(held))["reason"]
    monkeypatch.setattr(alike, "_calls", lambda held: [(0, 1, "overlapping")])
    assert "`x` and `y` overlapping" in verify_module(held, plan_of(held))["reason"]


def test_shared_memory_that_the_module_does_not_share():
    held = hold(graph_tools.module(lambda self, x: x.clone().view(-1)).eval(), (torch.randn(4, 4),), {})

    def dropped(graph):
        (clone,) = (n for n in graph["nodes"] if n["op"].startswith("aten.clone"))
        graph["nodes"].remove(clone)
        graph["nodes"][0]["arguments"]["self"] = {"value": "x"}

    assert verify_module(held, plan_of(held, dropped))["ok"]  # the plan makes the copy

    def unknown(graph):
        dropped(graph)
        del graph["meta"]["memory"]

    assert "shares memory" in verify_module(held, plan_of(held, unknown))["reason"]


def test_drawn_alike():
    m = graph_tools.module(lambda self, a, b, c, d: a + b + c + d, b=torch.randn(64)).eval()
    x, y = torch.randn(64), torch.randn(64)
    held = hold(m, (x, x, m.b, y), {})
    (a, b, c, d), _ = inputs_of(held, 1)
    assert a is b and c is m.b and a is not d and not torch.equal(a, x)
    (p, q, r, s), _ = held.copies((a, b, c, d), {})
    assert p is q and p is not a and r is m.b and torch.equal(s, d)
    reply = verify_module(held, plan_of(held))
    assert reply["ok"] and reply["status"]["served"] == reply["status"]["calls"], reply["reason"]


def test_offsets_stay_offsets():
    m = nn.EmbeddingBag(50, 8, mode="sum").eval()
    offsets = torch.arange(0, 200, 5)
    held = hold(m, (torch.randint(50, (200,)), offsets), {})
    for seed in range(3):
        (ids, drawn), _ = inputs_of(held, seed)
        assert torch.equal(drawn, offsets) and Expected(held, seed).form == "fp64"
    assert not torch.equal(ids, held.args[0])


def returns_what_it_wrote(self, x, y):
    return self.b.add_(x), self.w.mul_(0.5) + y


def test_results_in_own_tensors_are_judged_by_what_the_call_left(held):
    m = graph_tools.module(returns_what_it_wrote, b=torch.randn(4, 4), w=nn.Parameter(torch.randn(4))).eval()
    expected = Expected(hold(m, held.args, {}), 0)
    assert all(row["rms"] < 1e-6 for row in expected.baseline)


def test_weights_that_a_captured_graph_writes_to(held):
    m = graph_tools.module(returns_what_it_wrote, b=torch.randn(4, 4), w=nn.Parameter(torch.randn(4))).eval()
    before = [t.clone() for t in (m.w, m.b)]
    replies = []

    def capture(gm, inputs):
        with unset_fake_temporarily():
            graph = hold_graph(gm, inputs, {})
            replies.append(verify_module(graph, plan_of(graph)))
            assert all(torch.equal(a, b) for a, b in zip((m.w, m.b), before, strict=True))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(m, backend=capture)(*held.args)
    assert [r["ok"] for r in replies] == [True], replies


def test_left_as_it_was_where_a_run_fails(held):
    before = [t.clone() for t in held.own_tensors()]
    with pytest.raises(KeyboardInterrupt), held.kept():
        held.module(*held.copies(held.args, held.kwargs)[0])
        assert not torch.equal(held.module.w, before[0])
        raise KeyboardInterrupt
    assert all(torch.equal(a, b) for a, b in zip(held.own_tensors(), before, strict=True))
