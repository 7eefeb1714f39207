"""Clamps, thresholds and marks beside what is recognized by samples stay where they are: no sample may ever reach their bounds."""

from __future__ import annotations

import pytest
import torch
from graph_tools import check, module, ops
from torch.nn import functional as F

MARKS = (-1.0, 99.0, 255.0, 5.0, 0.5, 3.22, 7.0, 100.0)


def far() -> torch.Tensor:
    """One element of each row stands as far from the others as one can."""
    x = torch.randn(16, 256, generator=torch.Generator().manual_seed(0))
    x[:, 7] = 60.0
    return x


def marked() -> torch.Tensor:
    x = torch.randn(16, 256, generator=torch.Generator().manual_seed(0))
    for k, mark in enumerate(MARKS):
        x[:, k::16] = mark
    return x


def rms(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def layer(x):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)


def soft(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


BEHIND = {
    "clamp": lambda y: y.clamp(-5, 5),
    "far clamp": lambda y: y.clamp(-10, 10),
    "hardtanh": lambda y: F.hardtanh(y, -6.0, 6.0),
    "minimum": lambda y: torch.minimum(y, torch.tensor(0.9)),
    "where": lambda y: torch.where(y.abs() > 0.9, 0.0, y),
    "floor": lambda y: torch.floor(y) + y,
    "sign": lambda y: y * torch.sign(y - 0.9),
}
BEFORE = {
    "mark": lambda x: x.masked_fill(x == -1.0, 0.0),
    "marks": lambda x: torch.where((x == 99.0) | (x == 255.0), 0.5, x),
    "all but a mark": lambda x: torch.where(x != 5.0, x, 0.0),
    "band": lambda x: x.masked_fill((x > 3.2) & (x < 3.25), -3.0),
    "far bound": lambda x: x.clamp(max=98.0),
    "of a multiple": lambda x: torch.where(2 * x - 1 > 197.5, 0.0, x),
}


@pytest.mark.parametrize("of", [rms, layer, soft])
def test_pieces_behind_a_row_function(of):
    for name, behind in BEHIND.items():
        _, graph = check(module(lambda s, x, behind=behind: behind(of(x))), far())
        assert not {"rms_norm", "layer_norm", "softmax"}.isdisjoint(ops(graph)), name  # what has none is recognized


@pytest.mark.parametrize("of", [rms, layer, soft, F.relu, lambda x: x * torch.sigmoid(x), lambda x: x.clamp(min=0)])
def test_pieces_before_a_function(of):
    for before in BEFORE.values():
        check(module(lambda s, x, before=before: of(before(x))), marked())


def test_a_clamp_that_a_weight_reaches():
    m = module(lambda s, x: (rms(x) * s.w).clamp(-1000, 1000), w=torch.full((256,), 6e5))
    check(m, far())


def test_pieces_that_are_the_function():
    forms = {
        "relu": [
            lambda x: torch.where(x < 0, 0, x),
        ],
        "hardswish": [lambda x: x * (x + 3).clamp(0, 6) / 6, lambda x: x * F.relu6(x + 3) / 6],
        "softmax": [soft, lambda x: soft_of_finite(x)],
    }
    for op, written in forms.items():
        for forward in written:
            _, graph = check(module(lambda s, x, forward=forward: forward(x)), marked())
            assert op in ops(graph), op


def soft_of_finite(x):
    """As attention is written for rows that see no key: only an infinite maximum is asked for."""
    most = x.amax(-1, keepdim=True)
    e = torch.exp(x - torch.where(most == float("inf"), most, most))
    return e / e.sum(-1, keepdim=True)
