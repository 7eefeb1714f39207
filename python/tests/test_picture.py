"""A picture sees what a call of forward changes in Python, whatever holds it, and puts it back."""

from __future__ import annotations

import array
import collections
import contextvars
import itertools
import weakref

import numpy
import pytest
import tessera
import torch
from tessera.tracing.picture import Picture
from torch import nn

CONTEXT = contextvars.ContextVar("n", default=0)


class Key:
    pass


KEY = Key()


def counted():
    counted.n += 1
    return counted.n


counted.n = 0


def _more(o):
    o[0] += 1
    return o[0]


def _more_of_key(o):
    o[KEY] += 1
    return o[KEY]


def _used(o):
    value = next(iter(o))
    o.move_to_end(value)
    return o[value]


HELD = {  # what a module holds, what forward makes of it, what shows the change
    "bytearray": (bytearray(2), _more, bytes),
    "array": (array.array("l", [0, 5]), _more, list),
    "array of NumPy": (numpy.zeros(2, numpy.int64), _more, list),
    "large array of NumPy": ({0: 1, "a": numpy.zeros((600, 600))}, _more, lambda o: o[0]),
    "deque": (collections.deque([0, 5]), _more, list),
    "Counter": (collections.Counter({0: 1}), _more, dict),
    "OrderedDict": (collections.OrderedDict(a=1, b=2), _used, list),
    "WeakKeyDictionary": (weakref.WeakKeyDictionary({KEY: 1}), _more_of_key, lambda o: o[KEY]),
    "context variable": (CONTEXT, lambda o: o.set(o.get() + 1) and o.get(), lambda o: o.get()),
    "attribute of a function": (counted, lambda o: o(), lambda o: o.n),
    "iterator of a list": (iter([1, 2, 3]), next, lambda o: o.__length_hint__()),
    "count": ([itertools.count(2, 3)], lambda o: next(o[0]), lambda o: repr(o[0])),
}


@pytest.mark.parametrize("kind", HELD)
def test_what_a_call_changes_is_seen_and_put_back(kind):
    held, use, shows = HELD[kind]

    class Uses(nn.Module):
        def __init__(self):
            super().__init__()
            self.o = held

        def forward(self, x):
            return x * use(self.o)

    m, before = Uses(), shows(held)
    picture = Picture(m)
    for _ in range(2):
        m(torch.ones(2))
        assert shows(held) != before and picture.changed()
        picture.restore()
        assert shows(m.o) == before and m.o is held and not Picture(m).changed()


class Moves(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.ones(8))

    def forward(self, x):
        self.p.data = self.p.data * 1.5
        return x * self.p


class Writes(Moves):
    def forward(self, x):
        self.p.data.mul_(1.5)
        return x * self.p


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("TESSERA_HOME", str(tmp_path))


@pytest.mark.parametrize("kind", [Moves, Writes])
@torch.no_grad()
def test_writes_past_autograd(kind):
    """torch.export keeps a fake tensor among the constants of such a graph, and what runs it reads no memory."""
    m, x = kind(), torch.randn(4, 8)
    fast = tessera.optimize(m, x, effort="quick", seconds=2, progress=False)
    for i in range(3):
        torch.testing.assert_close(fast(x), x * 1.5 ** (i + 1))
        torch.testing.assert_close(m.p.detach(), torch.full((8,), 1.5 ** (i + 1)))


@torch.no_grad()
def test_the_smaller_of_a_count_and_a_number():
    """Inductor takes it for a whole number."""

    class Warms(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            return torch.tanh(x) * min(1.0, self.step / 3)

    x = torch.randn(4, 8)
    fast = tessera.optimize(Warms(), x, effort="quick", seconds=2, progress=False)
    for i in range(4):
        torch.testing.assert_close(fast(x), torch.tanh(x) * min(1.0, (i + 1) / 3))


@torch.no_grad()
def test_state_that_dynamo_loses_runs_in_eager():
    """A Counter that each call changes keeps its first number behind torch.compile (torch 2.11)."""

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = collections.Counter()

        def forward(self, x):
            self.seen["calls"] += 1
            return torch.tanh(x) * self.seen["calls"]

    m, x = Counts(), torch.randn(4, 8)
    fast = tessera.optimize(m, x, effort="quick", seconds=2, progress=False)
    for i in range(3):
        torch.testing.assert_close(fast(x), torch.tanh(x) * (i + 1))
        assert m.seen["calls"] == i + 1
    assert fast.status()["runner"] == "eager" and "other results than eager" in fast.status()["reason"]
