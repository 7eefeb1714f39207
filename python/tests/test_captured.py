"""Graphs that torch.compile captured: what they return besides tensors comes back, and what tracing refuses goes on in parts."""

from __future__ import annotations

import dataclasses

import pytest
import tessera
import torch
from tessera import backend
from torch import nn

OPTIONS = dict(seconds=4, effort="quick", place_all=True)


@pytest.fixture(autouse=True)
def without_gradients():
    torch.compiler.reset()
    with torch.no_grad():
        yield


class Counted(nn.Module):
    """The graph behind the first number returns it beside tensors."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x):
        expert = int(x[0, 0].abs().item() * 10) % 3
        y = self.linear(x).softmax(-1)
        return y, (y > 0.05).nonzero(), expert


class Listed(list):
    pass


@dataclasses.dataclass
class Shift:
    by: torch.Tensor


class Shifted(nn.Module):
    """An argument that torch.export does not take, and a result that cannot be taken apart."""

    def forward(self, x, shift):
        return Listed([torch.relu(x) + shift.by])


def test_numbers_among_results():
    torch.manual_seed(0)
    module = Counted()
    compiled = torch.compile(module, backend=backend.tessera, options=OPTIONS)
    for seed in range(1, 5):
        x = torch.randn(8, 32, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(compiled(x), module(x))
    assert "kernels" in {row["runner"] for row in backend.status(compiled)}


def test_a_form_that_is_refused_is_no_failure_of_the_module():
    args = (torch.randn(4, 16), Shift(torch.ones(1)))
    made = tessera.optimize(Shifted(), args, seconds=2, effort="quick", progress=False)
    result = made(*args)
    assert made.runner != "kernels" and type(result) is Listed
    assert torch.equal(result[0], Shifted()(*args)[0])
