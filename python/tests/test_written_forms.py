"""A layer norm that was written out and that no kernel takes gives what was written, on rows of huge numbers too."""

from __future__ import annotations

import graph_tools
import pytest
import torch
from tessera.tracing.held import hold
from torch import nn


def written(self, x):
    away = x - x.mean(-1, keepdim=True)
    return away / torch.sqrt((away * away).mean(-1, keepdim=True) + 1e-5) * self.w + self.b


@pytest.mark.parametrize("runner", ["eager", "inductor"])
@torch.no_grad()
def test_huge_rows(runner):
    m = graph_tools.module(written, w=nn.Parameter(torch.randn(64)), b=nn.Parameter(torch.randn(64))).eval()
    x = torch.randn(8, 64)
    held = hold(m, (x,), {})
    graph = graph_tools.canonical(held.graph)
    assert graph_tools.ops(graph) == ["layer_norm"]
    composed = held.compose({"graph": graph, "steps": [{"kind": "aten", "node": graph["nodes"][0]["name"]}]}, runner)
    for rows in (x, x * 1e18, torch.full((8, 64), 2e19), torch.zeros(8, 64), torch.full((8, 64), float("inf"))):
        torch.testing.assert_close(composed(rows), m(rows), rtol=1e-5, atol=1e-5, equal_nan=True)
    assert composed.status()["served"] == 5
    assert nn.functional.layer_norm(torch.full((8, 64), 2e19), (64,)).isnan().any()  # why PyTorch's own is not taken


def attends(self, q, k):
    scores = q @ k.mT * 0.3
    if self.b is not None:
        scores = scores.masked_fill(self.b, -torch.inf)
    return scores.softmax(-1) @ k


@pytest.mark.parametrize("mask", ["none", "causal", "other"])
@torch.no_grad()
def test_scores_without_a_number(mask):
    """Run by PyTorch's own ops: Inductor takes some of these for its attention, as plain torch.compile does."""
    drawn = torch.rand(4, 4) < 0.3
    b = {"none": None, "causal": torch.ones(4, 4, dtype=torch.bool).triu(1), "other": drawn.fill_diagonal_(False)}[mask]
    m = graph_tools.module(attends, b=b).eval()
    q, k = torch.randn(2, 4, 8), torch.randn(2, 4, 8)
    held = hold(m, (q, k), {})
    graph = graph_tools.canonical(held.graph)
    assert "scaled_dot_product_attention" in graph_tools.ops(graph)
    steps = [{"kind": "prepack" if n.get("prepack") else "aten", "node": n["name"]} for n in graph["nodes"]]
    for step, node in zip(steps, graph["nodes"], strict=True):
        step |= {"nodes": [node["name"]], "outputs": node["outputs"]}
    composed = held.compose({"graph": graph, "steps": steps}, "eager")
    for number in (1.0, torch.nan, torch.inf, -torch.inf):
        strange = q.clone()
        strange[0, 1, 2] = number
        torch.testing.assert_close(composed(strange, k), m(strange, k), rtol=1e-5, atol=1e-5, equal_nan=True)
        torch.testing.assert_close(composed(q, strange), m(q, strange), rtol=1e-5, atol=1e-5, equal_nan=True)
        everywhere = torch.full_like(q, number)
        torch.testing.assert_close(
            composed(everywhere, k.abs()), m(everywhere, k.abs()), rtol=1e-5, atol=1e-5, equal_nan=True
        )
    assert composed.status()["served"] == 12


def gelu(self, x):
    return nn.functional.gelu(x, approximate="tanh")


def rms(self, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def layer_norm(self, x):
    away = x - x.mean(-1, keepdim=True)
    return away / torch.sqrt((away * away).mean(-1, keepdim=True) + 1e-5)


def softmax(self, x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


@pytest.mark.parametrize("runner", ["eager", "inductor"])
@pytest.mark.parametrize("form", [gelu, rms, layer_norm, softmax])
@torch.no_grad()
def test_what_stands_for_written_ops_lies_as_they_do(form, runner):
    """Also where PyTorch's op lays its result out as its input, and what follows reads it by its places."""

    def forward(self, x):
        y = form(self, x.t()).contiguous()
        return y.view(-1), y.as_strided((4, 8), (8, 1)) * 2, form(self, x.t())

    m, x = graph_tools.module(forward).eval(), torch.randn(4, 8)
    held = hold(m, (x,), {})
    graph = graph_tools.canonical(held.graph)
    assert any(n.get("rewritten_from") for n in graph["nodes"])
    composed = held.compose(
        {"graph": graph, "steps": [{"kind": "aten", "node": n["name"]} for n in graph["nodes"]]}, runner
    )
    for got, wanted in zip(composed(x), m(x), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
        assert got.stride() == wanted.stride()
