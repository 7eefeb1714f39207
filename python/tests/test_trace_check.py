"""The traced graph beside the module: what computes something else while it is traced."""

from __future__ import annotations

import pytest
import torch
from tessera.common.errors import Error
from tessera.judging.trace_check import refuse_other_results
from tessera.tracing.held import hold
from torch import nn


def held(module: nn.Module, *args):
    with torch.no_grad():
        return hold(module, args, {})


class Asking(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, x):
        return self.of(x, torch.compiler.is_compiling())


OTHER = {
    "values": lambda x, traced: x * 2 if traced else x * 2.1,
    "some rows": lambda x, traced: x if traced else torch.cat([x[:-1], x[-1:] * 0]),
    "integers": lambda x, traced: (x > 0) if traced else (x > 0.3),
    "what is finite": lambda x, traced: x if traced else torch.where(x > 1, torch.inf, x),
    "a state": lambda x, traced: x.mul_(2) if traced else x.mul_(3),
}


@pytest.mark.parametrize("kind", OTHER)
def test_other_results_are_refused(kind):
    with pytest.raises(Error, match=r"TS0502.*result 0") as e:
        refuse_other_results(held(Asking(OTHER[kind]), torch.randn(16, 32)))
    assert e.value.diagnostic["data"]["differs"]


def test_an_encoder_with_a_padding_mask():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    x, hidden = torch.randn(2, 6, 16), torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]]).bool()
    with pytest.raises(Error, match="enable_nested_tensor=False"):
        refuse_other_results(held(nn.TransformerEncoder(layer, 2).eval(), x, None, hidden))
    refuse_other_results(held(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), x, None, hidden))


class Choosing(nn.Module):
    """Of scores that are equal but for roundings; then squares them many times, which moves with every rounding."""

    def forward(self, x):
        scores = torch.stack([(x * 3).sum(-1), x.sum(-1) * 3, (x / 7).sum(-1) * 21], -1)
        y = (x - x.mean()) * torch.arange(3.0)[scores.argmax(-1), None]
        for _ in range(40):
            y = 3.9 * y.sigmoid() * (1 - y.sigmoid())
        return y, scores.argmax(-1)


SAME = {
    "chosen by roundings": (Choosing(), torch.randn(64, 33)),
    "random": (nn.Dropout(0.5), torch.randn(64, 33)),
    "bf16": (
        nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8)).bfloat16(),
        torch.randn(4, 256).bfloat16(),
    ),
    "nothing but cancellation": (Asking(lambda x, _: (x + 1e4) - 1e4 - x), torch.randn(16, 16)),
    "float8": (Asking(lambda x, _: x.to(torch.float8_e4m3fn)), torch.randn(4, 16)),
    "memory as it was found": (Asking(lambda x, _: torch.empty_like(x)), torch.randn(4, 16)),
}


@pytest.mark.parametrize("kind", SAME)
def test_the_same_results_are_not(kind):
    module, x = SAME[kind]
    refuse_other_results(held(module, x))
