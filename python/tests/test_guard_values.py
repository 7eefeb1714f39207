"""Numbers by kind and sign, and everything else that a call or a module holds in Python: another value is never taken for the
traced one, an equal one is."""

from __future__ import annotations

import copy
import math
import types
from fractions import Fraction

import numpy as np
import pytest
import torch
from guarding import composed, kinds, served
from tessera.running.same_value import same_value
from torch import nn

# By each value, others that == or hash() take for it, or that are next to it.
OTHERS = {
    "2": (2, [2.0, 3, np.int64(2), Fraction(2)]),
    "True": (True, [1, 1.0, False]),
    "0.0": (0.0, [-0.0, 0, False, 5e-324]),
    "0.5": (0.5, [np.float64(0.5), 0.5 + 1e-16]),
    "nan": (math.nan, [0.0, math.inf]),
    "1j": (1j, [1 + 1j, complex(-0.0, 1)]),
    "a list": ([1, [2.0, 0.0]], [[1, [2, 0.0]], [1, [2.0, -0.0]], [1.0, [2.0, 0.0]], (1, [2.0, 0.0]), [1, [2.0]]]),
    "a dict": ({"a": 1, "b": 0.0}, [{"a": True, "b": 0.0}, {"a": 1, "b": -0.0}, {"b": 0.0, "a": 1}, {"a": 1}]),
    "a set": ({1, 2}, [{1.0, 2}, {True, 2}, {1}]),
    "a slice": (slice(1, 2), [slice(1.0, 2), slice(1, 3)]),
    "None": (None, [0, False, ""]),
    "a dtype": (torch.float32, [torch.float64, "torch.float32"]),
    "a text": ("1", [1, b"1"]),
}


@pytest.mark.parametrize("which", OTHERS)
def test_same_value(which):
    value, others = OTHERS[which]
    assert same_value(value, copy.deepcopy(value)) and same_value([value], [copy.copy(value)])
    for other in others:
        assert (
            not same_value(value, other)
            and not same_value((value,), (other,))
            and not same_value({0: value}, {0: other})
        )


def test_what_cannot_be_compared_is_another_value():
    x = torch.ones(2)
    assert same_value(x, x) and not same_value(x, x.clone())
    assert not same_value(np.ones(2), np.ones(2)), "an array's comparison is no bool"


def scaled(x: torch.Tensor, by) -> torch.Tensor:
    """What shows a number's kind and sign."""
    return torch.copysign(x, torch.tensor(float(by))) * (1 if isinstance(by, float) else 2) * (3 if by is True else 1)


class Called(nn.Module):
    def forward(self, x, i, by, several=(0.0, 1)):
        return i * by, scaled(x, by), scaled(x, several[0]), i * several[1]


NUMBERS = [2, 2.0, True, 1, 1.0, 0.0, -0.0, 0, False]


@pytest.mark.parametrize("traced", [2, True, 1.0, 0.0, -0.0], ids=repr)
def test_numbers_as_arguments(traced):
    x, i = torch.rand(4) + 0.5, torch.arange(4)
    made = composed(Called(), x, i, traced)
    for by in NUMBERS:
        assert served(made, x, i, by) is (repr(by) == repr(traced)), by
    assert not served(made, x, i, traced, (-0.0, 1)) and not served(made, x, i, traced, several=(0.0, True))
    assert not served(made, x, i, traced, [0.0, 1]) and served(made, x, i, traced, several=(0.0, 1))
    assert set(kinds(made)) == {"structure"}


class Holding(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number, self.several, self.nested = number, [number, 1], {"a": [0, [number]], "t": torch.ones(4)}
        self.config, self.configs = types.SimpleNamespace(n=number, m=[number]), [types.SimpleNamespace(n=number)]

    def forward(self, x):
        y = scaled(x, self.number) + 2 * scaled(x, self.several[0]) + 4 * scaled(x, self.nested["a"][1][0])
        y = y + 8 * scaled(x, self.config.n) + 16 * scaled(x, self.config.m[0]) + 32 * scaled(x, self.configs[0].n)
        return y * self.nested["t"]


PLACES = {
    "an attribute": lambda m, v: setattr(m, "number", v),
    "a list": lambda m, v: m.several.__setitem__(0, v),
    "another list": lambda m, v: setattr(m, "several", [v, 1]),
    "a list in a list in a dict": lambda m, v: m.nested["a"][1].__setitem__(0, v),
    "an object": lambda m, v: setattr(m.config, "n", v),
    "another object": lambda m, v: setattr(m, "config", types.SimpleNamespace(n=v, m=[m.number])),
    "a list in an object": lambda m, v: m.config.m.__setitem__(0, v),
    "an object in a list": lambda m, v: setattr(m.configs[0], "n", v),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("traced", "other"), [(2, 2.0), (0.0, -0.0)], ids=repr)
def test_numbers_in_attributes(place, traced, other):
    m, x = Holding(traced), torch.rand(4) + 0.5
    made = composed(m, x)
    assert served(made, x)
    PLACES[place](m, other)
    assert not served(made, x) and kinds(made) == {"attribute": 2}
    PLACES[place](m, traced)
    assert served(made, x)
