"""Values that lie elsewhere than the graph's own device: they keep kernels from nothing, and what ran in place of a plan is never
timed as that plan."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from graph_tools import canonical, ops
from tessera.common.reference import Executor
from tessera.judging.module_check import Expected
from tessera.judging.settling import Settler
from tessera.running.plan_graph import build
from tessera.tracing.held import hold
from torch import nn


class Counted(nn.Module):
    """Takes a tensor of another device than its own, as caches have counters on the host."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(256)

    def forward(self, x, at):
        return torch.nn.functional.silu(self.norm(x)) * torch.tanh(x) * (1 + at.dim())


@pytest.fixture
def given():
    torch.manual_seed(0)
    return Counted().eval(), (torch.randn(64, 256), torch.zeros((), dtype=torch.int64, device="meta"))


def aten_plan(held) -> dict:
    return {
        "graph": held.graph,
        "steps": [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]],
        "leftover": [],
    }


def test_an_input_that_has_moved_is_not_served(given):
    module, (x, at) = given
    held = hold(module, (x, at), {})
    composed = held.compose(aten_plan(held), "eager")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        composed(x, at)
        assert not composed.status()["fallbacks"]
        composed(x, torch.zeros((), dtype=torch.int64))
    (event,) = composed.status()["fallbacks"]
    assert event["kind"] == "device" and "is on cpu; traced on meta" in event["reason"]


def test_the_original_is_never_timed_as_a_plan(given):
    module, inputs = given
    held = hold(module, inputs, {})
    sound = aten_plan(held)
    moved = copy.deepcopy(sound)
    (x,) = (v for v in moved["graph"]["values"] if v["origin"] == "user_input" and v["shape"] == [64, 256])
    x["device"] = "meta"  # it lies on the host
    moved["steps"].append({"kind": "prepack", "outputs": []})  # another plan than the sound one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, right, wrong = Settler(held).settle(
            [{"plan": p, "leftovers": ["eager"]} for p in (sound, moved)], ["eager"], 0.2
        )
    assert not eager["reason"] and not right["reason"] and right["call_ms"] > 0
    assert "the original module ran in place of the kernels" in wrong["reason"]
    assert "is on cpu; traced on meta" in wrong["reason"]


def test_what_an_op_makes_elsewhere_stays_there():
    """A graph of `meta` that counts on the host: the device that an op names is the one of its value."""

    class Made(nn.Module):
        def forward(self, x):
            return x + 1, torch.arange(4, device="cpu") * 2

    x = torch.empty(8, device="meta")
    held = hold(Made().eval(), (x,), {})
    kinds = {v["name"]: v.get("device", held.graph["device"]) for v in held.graph["values"]}
    assert set(kinds.values()) == {"meta", "cpu"}
    made = build(aten_plan(held)).main(x)
    assert [t.device.type for t in made] == ["meta", "cpu"] and made[1].tolist() == [0, 2, 4, 6]
    assert Executor(held.graph, "cpu").run_all({held.graph["inputs"][0]: torch.zeros(8)})


def test_a_move_to_another_device_is_no_copy_to_leave_out():
    """As of a cache's counter, which begins on the host: its successor has to lie where the module puts it."""

    class Moves(nn.Module):
        def forward(self, x, at):
            there = at.to(x.device)
            return x * 2, there + 1, there.to(x.device) + 2

    held = hold(Moves().eval(), (torch.empty(8, device="meta"), torch.zeros((), dtype=torch.int64)), {})
    graph = canonical(held.graph)
    assert ops(graph).count("_to_copy") == 1  # the second moves nothing
    made = build(
        aten_plan(held) | {"graph": graph, "steps": [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]]}
    )
    feeds = dict(zip(graph["inputs"], (torch.empty(8, device="meta"), torch.tensor(5)), strict=True))
    assert [t.device.type for t in made.main(*(feeds[n] for n in made.feeds))] == ["meta"] * 3


def test_a_result_on_another_device_is_wrong():
    module = nn.LayerNorm(16).eval()
    held = hold(module, (torch.randn(4, 16),), {})
    expected = Expected(held, 1)
    (result,) = [module(expected.args[0]).detach()]
    assert expected.judge([result], "fp32")[1] == ""
    assert "on meta; the original's" in expected.judge([result.to("meta")], "fp32")[1]
