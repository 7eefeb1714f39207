"""Other sizes of a held module: which are tried, what their inputs are, what a module that refuses one says."""

from __future__ import annotations

import pytest
import tessera
import torch
from composing import Mlp
from tessera.tracer_process import Tracer
from tessera.tracing import resizes
from tessera.tracing.held import hold
from torch import nn


class Causal(nn.Module):
    """Attention with a mask and positions as inputs: extents that must change together."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 8)

    def forward(self, x, mask, positions):
        x = x + self.embed(positions)
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)


def causal(batch=4, length=32):
    mask = torch.full((length, length), -torch.inf).triu(1)
    return hold(Causal().eval(), (torch.randn(batch, length, 8), mask, torch.arange(length)), {})


def test_batch_then_sequence():
    held = causal()
    first, second, third = resizes.sizes(held)
    assert first.text == "batch (dim 0: 4 → 2)" and second.text == "sequence (dim 1: 32 → 24)"
    assert third.extents == ((0, 4, 6),)
    x, mask, positions = resizes.inputs_at(held, second)[0]
    assert x.shape == (4, 24, 8) and positions.tolist() == list(range(24))
    assert torch.equal(mask, torch.full((24, 24), -torch.inf).triu(1))
    for size in (first, second, third):
        made = resizes.resized(held, size)
        assert made.graph["precision"] == held.graph["precision"] and made.module is held.module
        assert made.args[0].shape == tuple(size.shapes[0])


def test_equal_extents_are_kept_apart():
    square = hold(nn.Identity(), (torch.randn(16, 16, 16),), {})
    assert [s.shapes[0] for s in resizes.sizes(square)][:2] == [(8, 16, 16), (16, 8, 16)]
    image = hold(nn.Conv2d(3, 4, 3), (torch.randn(1, 3, 32, 24),), {})
    assert [s.shapes[0] for s in resizes.sizes(image)] == [(2, 3, 32, 24), (1, 3, 24, 16), (3, 3, 32, 24)]


def test_a_module_that_refuses_says_why():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            return x.view(8, 16)

    held = hold(Fixed(), (torch.randn(8, 16),), {})
    before = held.module.count.item()
    reason = resizes.resized(held, next(resizes.sizes(held)))
    assert "does not take it" in reason and "RuntimeError" in reason
    assert held.module.count.item() == before


def test_the_tracer_answers_until_there_are_no_more():
    tracer = Tracer(hold(Mlp().eval(), (torch.randn(8, 16),), {}))
    plan = {"schema": "tessera.plan/1", "leftover": []}
    with pytest.raises(tessera.Error) as e:
        tracer.verify_module({"plan": plan, "resized": True})
    assert e.value.diagnostic["code"] == "TS0706"
    answers = [tracer.trace_resized({"attempt": i}) for i in range(2)]
    assert [a["size"] for a in answers] == ["batch (dim 0: 8 → 4)", "batch (dim 0: 8 → 12)"]
    assert tracer.trace_resized({"attempt": 2}) == {"done": True}
    graph = tracer.trace_resized({"attempt": 1})["graph"]
    plan |= {"graph": graph, "steps": [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]]}
    assert tracer.verify_module({"plan": plan, "seeds": 1, "resized": True})["ok"]
    tracer.held.resizable = False
    assert tracer.trace_resized({"attempt": 0}) == {"done": True}
