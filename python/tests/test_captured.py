"""Graphs that torch.compile captured: what they return besides tensors comes back, and what tracing refuses goes on in parts."""

from __future__ import annotations

import dataclasses

import pytest
import tessera
import torch
from tessera import backend
from tessera.common.errors import Error
from tessera.tracing.held import hold
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


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()


class Counting(nn.Module):
    """Captured in parts."""

    def __init__(self):
        super().__init__()
        self.inner, self.calls = Inner(), 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x).softmax(-1)


@pytest.mark.parametrize("change", ["hook", "hook before", "forward"])
def test_hooks_and_forwards_that_come_later_are_seen_in_parts(change, monkeypatch):
    module, x = Counting(), torch.randn(4, 8)
    made = tessera.optimize(module, (x,), seconds=2, effort="quick", progress=False)
    assert made.runner == "parts"
    before = made(x)
    if change == "hook":
        module.inner.linear.register_forward_hook(lambda m, given, result: result * 3)
    elif change == "hook before":
        module.inner.linear.register_forward_pre_hook(lambda m, given: (given[0] * 3,))
    else:
        monkeypatch.setattr(Inner, "forward", lambda self, x: self.linear(x).tanh())
    after = made(x)
    torch.testing.assert_close(after, module(x))
    assert not torch.allclose(before, after)


def test_what_begins_elsewhere_in_its_memory_is_not_read_by_places():
    class Scattered(nn.Module):
        def forward(self, x):
            return x.select_scatter(x.select(-1, 0) * 2, -1, 3).as_strided((2, 2), (1, 1), 1)

    hold(Scattered(), (torch.randn(1, 4),), {})
    with pytest.raises(Error, match="looks at its memory by places"):
        hold(Scattered(), (torch.randn(8)[4:].view(1, 4),), {})


def test_results_that_share_elements_and_lie_otherwise_are_refused():
    class Unfolded(nn.Module):
        def forward(self, x):
            y = x.scatter_(-1, torch.zeros_like(x[..., :1], dtype=torch.int64), 1)
            return torch.lerp(y, x, 0.0).unfold(-1, 2, 1)

    hold(Unfolded(), (torch.randn(1, 8, 4, 4),), {})
    x = torch.randn(4, 4, 8, 1)
    with pytest.raises(Error, match="elements of which share memory"):
        hold(Unfolded(), (x.permute(3, 2, 1, 0),), {})


def test_views_of_parameters_say_that_they_record_gradients():
    class Viewed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.weight.unsqueeze(-1), x * 2

    hold(Viewed(), (torch.ones(2),), {})
