"""What the canonical form takes apart runs as one op of PyTorch's where no kernel takes it."""

from __future__ import annotations

import copy

import pytest
import torch
from graph_tools import check
from tessera.running.whole_ops import whole
from tessera.tracing import held as holding
from torch import nn


def module_of(norm: nn.Module) -> nn.Module:
    if getattr(norm, "running_mean", None) is not None:
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    if norm.weight is not None:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return nn.Sequential(norm, nn.ReLU()).eval()


CASES = {
    "affine": (lambda: nn.BatchNorm2d(6), (2, 6, 5, 4)),
    "plain": (lambda: nn.BatchNorm2d(6, affine=False, eps=0.1), (2, 6, 5, 4)),
    "one spatial dim": (lambda: nn.BatchNorm1d(6), (2, 6, 5)),
    "no spatial dim": (lambda: nn.BatchNorm1d(6, eps=1e-3), (5, 6)),
    "three": (lambda: nn.BatchNorm3d(3), (2, 3, 4, 4, 4)),
}


def left_to_pytorch(module: nn.Module, x: torch.Tensor, graph: dict):
    held = holding.hold(module, (x,), {})
    steps = [{"kind": "aten", "node": n["name"]} for n in graph["nodes"] if not n.get("prepack")]
    plan = {"schema": "tessera.plan/1", "graph": graph, "steps": steps, "leftover": []}
    return held.compose(plan, "eager")


@pytest.mark.parametrize("name", CASES)
def test_a_batch_norm_is_one_call_again(name):
    torch.manual_seed(0)
    make, shape = CASES[name]
    module, x = module_of(make()), torch.randn(shape)
    _, graph = check(copy.deepcopy(module), x)
    assert len(whole(graph)[0]) == 1
    composed = left_to_pytorch(module, x, graph)
    called = [str(n.target) for n in composed._built.main.graph.nodes if n.op == "call_function"]
    assert called == ["aten.batch_norm.default", "aten.relu.default"], called
    with torch.no_grad():
        assert torch.equal(composed(x), module(x))
        module[0].running_var.mul_(4)
        assert torch.equal(composed(x), module(x)), "the statistics are read in every call"


def test_what_only_looks_like_one_is_left_alone():
    class Other(nn.Module):
        def __init__(self, spoil: str):
            super().__init__()
            self.spoil = spoil
            for name in ("mean", "var", "weight", "bias"):
                self.register_buffer(name, torch.rand(6) + 0.5)

        def forward(self, x):
            scale = torch.rsqrt(self.var + 1e-5) * self.weight
            used = self.weight if self.spoil == "scale" else scale
            shift = self.bias - self.mean * used
            if self.spoil == "number":
                shift = torch.rsub(self.mean * used, 1)
            if self.spoil == "alpha":
                shift = torch.sub(self.bias, self.mean * scale, alpha=2)
            return x * scale + shift

    x = torch.randn(3, 6)
    for spoil, count in (("", 1), ("scale", 0), ("alpha", 0), ("number", 0)):
        graph = holding.hold(Other(spoil).eval(), (x,), {}).graph
        assert len(whole(graph)[0]) == count, spoil


def test_inductor_takes_it_too():
    torch.manual_seed(0)
    module, x = module_of(nn.BatchNorm2d(6)), torch.randn(2, 6, 5, 4)
    _, graph = check(copy.deepcopy(module), x)
    composed = left_to_pytorch(module, x, graph)
    composed = composed._again(module, leftover="inductor")
    with torch.no_grad():
        torch.testing.assert_close(composed(x), module(x))
