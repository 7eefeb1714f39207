"""Nested tensors, of either layout: no graph of ours takes one, and Dynamo's parts run them as eager does."""

from __future__ import annotations

import pytest
import tessera
import torch
from tessera.judging.trace_check import apart
from torch import nn


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 2


class Padded(Kept):
    def forward(self, x):
        return torch.nested.to_padded_tensor(self.linear(x), 0.0).softmax(-1)


def given(layout: torch.layout) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], layout=layout)


@pytest.mark.parametrize("kind", [Kept, Padded])
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_as_eager(kind, layout):
    torch._dynamo.reset()
    module = kind()
    with torch.no_grad():
        made = tessera.optimize(module, (given(layout),), seconds=3, effort="quick", progress=False)
        got, wanted = made(given(layout)), module(given(layout))
    pieces = [t.unbind() if t.is_nested else [t] for t in (got, wanted)]
    torch.testing.assert_close(*pieces)


def test_how_far_nested_tensors_are_apart():
    one, other = given(torch.strided), given(torch.strided)
    assert apart(one, other) == (0.0, 0.0)
    other.unbind()[1].zero_()
    assert apart(one, other)[0] > 0.1
    assert apart(one, torch.zeros(2, 3, 4))[1] == 1.0
