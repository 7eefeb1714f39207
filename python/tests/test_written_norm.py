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
