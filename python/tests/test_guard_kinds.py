"""Containers and objects of every kind that a module may hold, whose content forward reads: a change of it is seen."""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import types

import numpy
import pytest
import torch
from guarding import composed, served
from tessera.tracing.tracer import trace_module
from torch import nn

STORE = {"v": 1.0}
CONTEXT = contextvars.ContextVar("v", default=1.0)


class Slots:
    __slots__ = ("unset", "v")

    def __init__(self):
        self.v = 1.0


class Entries(dict):
    __getattr__ = dict.__getitem__


class Numbers(list):
    pass


class OfStore:
    def __get__(self, owner, kind=None):
        return STORE["v"]


class Described:
    v = OfStore()


class Converted:
    def __init__(self):
        self.v = 1.0

    def __float__(self):
        return self.v


def asked():
    return asked.v


asked.v = 1.0


def _first(o):
    o[0] = 3


def _entry(o):
    o["v"] = 3.0


def _attribute(o):
    o.v = 3.0


KINDS = {  # what is held, what forward reads of it, what changes it
    "deque": (collections.deque([1.0, 2.0]), lambda o: o[0], _first),
    "long deque": (collections.deque([1.0] * 100), lambda o: o[0], _first),
    "long list": ([1.0] * 1000, lambda o: o[0], _first),
    "long list of lists": ([[1.0] for _ in range(100)], lambda o: o[70][0], lambda o: _first(o[70])),
    "long dict": ({"v": 1.0} | {i: i for i in range(1000)}, lambda o: o["v"], _entry),
    "long set": (set(range(1000)), lambda o: 2.0 if 5 in o else 1.0, lambda o: (o.remove(5), o.add(-1))),
    "object with a long list": (types.SimpleNamespace(v=1.0, names=["n"] * 1000), lambda o: o.v, _attribute),
    "subclass of list": (Numbers([1.0]), lambda o: o[0], _first),
    "subclass of dict": (Entries(a=Entries(v=1.0)), lambda o: o.a.v, lambda o: _entry(o.a)),
    "Counter": (collections.Counter(v=1), lambda o: o["v"], _entry),
    "order of a dict": (
        {"a": 1.0, "v": 2.0},
        lambda o: next(iter(o.values())),
        lambda o: o.__setitem__("a", o.pop("a")),
    ),
    "order of an OrderedDict": (
        collections.OrderedDict(a=1.0, v=2.0),
        lambda o: next(iter(o.values())),
        lambda o: o.move_to_end("a"),
    ),
    "order of a deque": (collections.deque([1.0, 2.0]), lambda o: o[0], lambda o: o.rotate(1)),
    "UserDict": (collections.UserDict(v=1.0), lambda o: o["v"], _entry),
    "view of a dict": (types.MappingProxyType(STORE), lambda o: o["v"], lambda o: _entry(STORE)),
    "array": (array.array("d", [1.0]), lambda o: o[0], _first),
    "bytearray": (bytearray([1]), lambda o: o[0], _first),
    "array of NumPy": (numpy.ones(3), lambda o: float(o[0]), _first),
    "number of NumPy in a dict": ({"a": numpy.ones(())}, lambda o: o["a"].item(), lambda o: o["a"].fill(3)),
    "object with slots": (Slots(), lambda o: o.v, _attribute),
    "descriptor": (Described(), lambda o: o.v, lambda o: _entry(STORE)),
    "conversion": (Converted(), float, _attribute),
    "context variable": (CONTEXT, lambda o: o.get(), lambda o: o.set(3.0)),
    "arguments of a partial": (functools.partial(lambda t: t[0], [1.0]), lambda o: o(), lambda o: _first(o.args[0])),
    "keywords of a partial": (
        functools.partial(lambda t: t[0], t=[1]),
        lambda o: o(),
        lambda o: _first(o.keywords["t"]),
    ),
    "attribute of a function": (asked, lambda o: o(), _attribute),
}


def _marked(t: torch.Tensor) -> torch.Tensor:
    t.v = 1.0
    return t


MARKED = _marked(torch.ones(2))
KINDS |= {
    "attribute of a tensor": (_marked(torch.ones(2)), lambda o: o.v, _attribute),
    "attribute of a tensor in a list": ([_marked(torch.ones(2))], lambda o: o[0].v, lambda o: _attribute(o[0])),
    "attribute of a global tensor": (MARKED, lambda o: MARKED.v, _attribute),
}


def _holding(held, read) -> nn.Module:
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.o = held

        def forward(self, x):
            return torch.tanh(x) * read(self.o)

    return Holder()


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_a_change_of_what_is_held_is_seen(kind):
    held, read, change = KINDS[kind]
    m, x = _holding(held, read), torch.randn(4)
    made = composed(m, x)
    assert all(torch.equal(made(x), m(x)) for _ in range(3)) and made.status()["served"] == 3
    token = change(held)
    assert m.o is held
    try:
        assert all(torch.equal(made(x), m(x)) for _ in range(2)) and made.status()["served"] == 3
    finally:
        if isinstance(token, contextvars.Token):
            CONTEXT.reset(token)
        STORE["v"] = asked.v = 1.0


class Asks(nn.Module):
    def forward(self, x):
        return x * (3.0 if hasattr(self, "extra") else 2.0)


class OfNoName(nn.Module):
    def forward(self, x):
        try:
            return x * of_no_name
        except NameError:
            return x * float(2)


class AsksGlobals(nn.Module):
    def forward(self, x):
        return x * (3.0 if "of_no_name" in globals() else 2.0)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Asks, lambda m: setattr(m, "extra", 1)),
        (OfNoName, lambda m: globals().update(of_no_name=5.0)),
        (OfNoName, lambda m: globals().update(float=lambda x: x + 1)),
        (AsksGlobals, lambda m: globals().update(of_no_name=5.0)),
    ],
)
@torch.no_grad()
def test_a_name_that_comes_later_is_seen(kind, change):
    x = torch.randn(4)
    made = composed(kind(), x)
    try:
        globals()["of_nobody"] = 1
        assert served(made, x) or kind is AsksGlobals
        change(made.original)
        assert not served(made, x)
    finally:
        for name in ("of_no_name", "of_nobody", "float"):
            globals().pop(name, None)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.inner = nn.Parameter(torch.ones(4)), nn.Linear(4, 4)
        self.register_buffer("b", torch.ones(4))

    def forward(self, x):
        return self.inner(x) * self.w + self.b


@pytest.mark.parametrize(
    ("name", "made"), [("w", torch.tensor(5.0)), ("b", torch.tensor(5.0)), ("inner", nn.Linear(4, 4))]
)
@torch.no_grad()
def test_an_attribute_that_hides_state_is_seen(name, made):
    m, x = Stateful(), torch.randn(3, 4)
    fast = composed(m, x)
    assert served(fast, x)
    vars(m)[name] = made
    assert torch.equal(fast(x), m(x)) and not served(fast, x)
    if isinstance(made, torch.Tensor):
        made.mul_(2)
        assert torch.equal(fast(x), m(x))
    del vars(m)[name]
    assert served(fast, x)


LOOSE = torch.ones(4)


class HoldsLoose(nn.Module):
    def __init__(self):
        super().__init__()
        self.several, self.table = [torch.ones(4), torch.ones(4) * 2], {"t": torch.ones(4)}
        self.thing = types.SimpleNamespace(t=torch.ones(4))

    def forward(self, x):
        return (x * self.several[0] + self.several[1]) * self.table["t"] * self.thing.t * LOOSE


@pytest.mark.parametrize(
    "of",
    [lambda m: m.several[0], lambda m: m.several[1], lambda m: m.table["t"], lambda m: m.thing.t, lambda m: LOOSE],
)
@torch.no_grad()
def test_what_is_known_of_a_loose_tensor_is_watched(of):
    """A tensor of ones is a number to a graph, until somebody writes to it."""
    m, x = HoldsLoose(), torch.randn(4)
    fast = composed(m, x)
    assert served(fast, x)
    of(m).mul_(3)
    try:
        assert torch.equal(fast(x), m(x)) and not served(fast, x)
    finally:
        LOOSE.fill_(1)


def test_tracing_leaves_the_very_objects():
    held = [[1.0], {"a": (1, 2)}]
    m = _holding(held, lambda o: o[0][0])
    inner = list(held)
    trace_module(m, (torch.randn(4),))
    assert m.o is held and all(a is b for a, b in zip(held, inner, strict=True))
