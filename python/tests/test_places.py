"""Views by places in memory (as_strided) of what forward makes: they see where it begins and how it lies, whatever is rewritten below."""

from __future__ import annotations

import pytest
import tessera
import torch
from tessera import backend
from torch import nn

OPTIONS = dict(seconds=5, effort="quick", progress=False, leftover="eager", place_all=True, resizes=False)


def behind() -> torch.Tensor:
    """Begins forty elements behind its memory's beginning."""
    return torch.arange(80.0).reshape(2, 5, 8)[1:]


def copied(m, x):
    return x.clone().as_strided((5, 8), (8, 1), 0) * 2


def neutral(m, x):
    return (x * 1).as_strided((5, 8), (8, 1), 0) * 2


def a_part(m, x):
    return x.clone()[:, 1:].as_strided((2, 8), (16, 1)) * 2


def written(m, x):
    y = x.clone()
    y[:, 2] = 7
    return y[:, 1:].as_strided((2, 8), (16, 1), 8) * 2


def transposed(m, x):
    return (x.transpose(1, 2) * 1).as_strided((2, 8), (16, 1), 0) * 2


def other_type(m, x):
    return x.clone().view(torch.int32).as_strided((5, 3), (8, 1), 2) * 2


def of_siblings(m, x):
    q, k = x @ m.weight[0].T, x @ m.weight[0].flip(0).T
    return k.as_strided((2, 5), (5, 1), 5) + q.as_strided((2, 5), (5, 1), 0)


def scattered(m, x):
    y = x.clone()
    return torch.as_strided_scatter(y, y[0] * 3, (5, 8), (8, 1), 0) * 2


def copied_to(m, x):
    return m.weight.copy_(x).as_strided((5, 8), (8, 1), 0) * 2


def copied_to_own(m, x):
    y = torch.empty(1, 5, 8)
    y.copy_(x)
    return y.as_strided((5, 8), (8, 1), 0) * 2


def copied_from_a_part(m, x):
    m.weight[:] = torch.cat([x + 1, x * 3])[1:]
    return m.weight.as_strided((5, 8), (8, 1), 0) * 2


def of_what_is_given(m, x):
    return torch.relu(x.as_strided((5, 8), (8, 1), 3)) * 2


def of_a_view(m, x):
    return torch.relu((x * 2)[:, 1:].as_strided((2, 2), (2, 1), 1)) * 2


BODIES = [
    *(copied, neutral, a_part, written, transposed, other_type, of_siblings, scattered),
    *(copied_to, copied_to_own, copied_from_a_part, of_what_is_given, of_a_view),
]
BEHIND = (copied, copied_to, copied_from_a_part, of_what_is_given, of_a_view)


class Module(nn.Module):
    def __init__(self, body):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.weight = body, nn.Parameter(torch.randn(1, 5, 8))

    def forward(self, x):
        return self.body(self, x)


@pytest.mark.parametrize(
    ("door", "body"),
    [*(("optimize", b) for b in BODIES), *(("backend", b) for b in BEHIND)],
)
def test_as_eager(door, body):
    torch._dynamo.reset()
    eager, module = Module(body), Module(body)
    with torch.no_grad():
        if door == "optimize":
            made = tessera.optimize(module, (behind(),), **OPTIONS)
        else:
            made = torch.compile(module, backend=backend.tessera, options=OPTIONS)
        for _ in range(2):
            torch.testing.assert_close(made(behind()), eager(behind()))


class Shared(nn.Module):
    def forward(self, x, y):
        return torch.relu(y.as_strided(y.shape, y.stride(), 1)) * 2 + x


def test_arguments_that_share_memory():
    def given() -> tuple:
        t = torch.arange(24.0)
        return t[0:12].view(2, 6), t[1:13].view(2, 6)

    with torch.no_grad():
        made = tessera.optimize(Shared(), given(), **OPTIONS)
        assert torch.equal(made(*given()), Shared()(*given()))
