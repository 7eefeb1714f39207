"""The composed module when its parameters and buffers change."""

from __future__ import annotations

import copy

import pytest
import torch
from composing import Mlp, in_place, kinds, mlp_plan, same
from tessera.running import plan_graph
from tessera.running.compose import ComposedModule
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore")


def load_state(m):
    m.load_state_dict({k: v * 3 for k, v in m.state_dict().items()})


def load_assigned(m):
    m.load_state_dict({k: v * 3 for k, v in m.state_dict().items()}, assign=True)


def step(m):
    m(torch.ones(3, 16)).sum().backward()
    torch.optim.SGD(m.parameters(), 0.1).step()


def set_data(m):
    m.fc1.weight.data = m.fc1.weight.data + 1


def replaced(m):
    with torch.no_grad():
        m.fc1.weight = nn.Parameter(m.fc1.weight * 2)


def replaced_module(m):
    m.get_submodule("fc1").weight = nn.Parameter(torch.full((32, 16), 0.01))


def unpacked(m):
    with torch.no_grad():
        m.fc1.bias.add_(1)


def replaced_unpacked(m):
    m.fc1.bias = nn.Parameter(torch.full((32,), 0.3))


@pytest.mark.parametrize(
    "change, repacks",
    [
        (load_state, 1),
        (load_assigned, 1),
        (step, 1),
        (in_place, 1),
        (set_data, 1),
        (replaced, 1),
        (replaced_module, 1),
        (unpacked, 0),
        (replaced_unpacked, 0),
    ],
)
@pytest.mark.parametrize("frozen", [True, False])
def test_changed_parameters(library, change, repacks, frozen):
    torch.manual_seed(0)
    m = Mlp().eval()
    c, ref = ComposedModule(m, mlp_plan(library), frozen=frozen), copy.deepcopy(m)
    repacks = repacks if frozen else 0  # else what follows from parameters is computed in the call
    x = torch.randn(8, 16)
    same(c, ref, x)
    c.zero_grad(), ref.zero_grad()
    change(c), change(ref)
    same(c, ref, x)
    same(c, ref, x)
    s = c.status()
    assert s["repacks"] == repacks and kinds(c).get("repack", 0) == repacks
    assert s["calls"] - s["served"] == (1 if change is step else 0)  # the step's own training call


def test_only_packed_values_that_are_read_are_kept(library):
    """The transposes are steps of the engine's plan too; without a kernel, what it would have read is not packed."""
    plan = mlp_plan(library)
    plan["steps"] = [{"kind": "prepack", "nodes": [f"w{i}_t"], "outputs": [f"w{i}_t"]} for i in (1, 2)] + plan["steps"]
    frozen = plan_graph.Packing(frozen=True)
    assert plan_graph.build(plan, packing=frozen).packed == ["w1_p", "w2_p"]
    assert plan_graph.build(plan, disabled=frozenset({"p01"}), packing=frozen).packed == ["w2_p"]
    none = plan_graph.build(plan, disabled=frozenset({"p01", "p02"}), packing=frozen)
    assert none.packed == [] and none.pack is None
    calls = plan_graph.build(plan)
    assert calls.packed == [] and {"w1", "w2"} <= set(calls.feeds)


def test_moved_to_another_type(pair):
    c, ref = pair
    same(c, ref, torch.randn(8, 16))
    c.to(torch.float64), ref.to(torch.float64)
    same(c, ref, torch.randn(8, 16).double())
    with pytest.raises(RuntimeError), torch.no_grad():
        c(torch.randn(8, 16))  # as the original: float32 input, float64 parameters
    ref.count += 1
    assert set(kinds(c)) == {"dtype", "parameter"}
    c.to(torch.float32), ref.to(torch.float32)
    same(c, ref, torch.randn(8, 16))
    assert c.status()["served"] == 2


def test_inference_tensors_are_repacked_on_every_call(library):
    with torch.inference_mode():
        m = Mlp().eval()
        c = ComposedModule(m, mlp_plan(library))
        ref = copy.deepcopy(m)
        x = torch.randn(8, 16)
        torch.testing.assert_close(c(x), ref(x))
        m.fc1.weight.mul_(2), ref.fc1.weight.mul_(2)
        torch.testing.assert_close(c(x), ref(x))


def test_facts_of_a_buffer(library):
    plan = mlp_plan(library)
    next(v for v in plan["graph"]["values"] if v["name"] == "b1")["facts"] = {"scalar": 0.0}
    m = Mlp().eval()
    nn.init.zeros_(m.fc1.bias)
    c, ref = ComposedModule(m, plan), copy.deepcopy(m)
    same(c, ref, torch.randn(8, 16))
    with torch.no_grad():
        c.fc1.bias[1] = 4
        ref.fc1.bias[1] = 4
    same(c, ref, torch.randn(8, 16))
    assert kinds(c) == {"facts": 1}
    with torch.no_grad():
        c.fc1.bias[1] = 0
        ref.fc1.bias[1] = 0
    same(c, ref, torch.randn(8, 16))
    assert c.status()["served"] == 2
