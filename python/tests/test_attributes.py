"""What a module's forward reads besides its tensors: another function, object, list or method is never taken for the traced one."""

from __future__ import annotations

import collections
import dataclasses
import functools
import types
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tessera.running.attributes import Attributes
from tessera.running.compose import ComposedModule
from tessera.tracing.tracer import trace_module
from torch import nn


class Configuration:
    def __init__(self, scale: float, table: float = 0.5):
        self.scale, self.table = scale, torch.linspace(table, 1, 4)


class Numbers:
    def __init__(self, shift: float, unused: float = 0.0):
        self.shift, self.unused = shift, torch.full((2,), unused)


Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass(slots=True)
class Slots:
    power: int
    names: list


class Scaling:
    def __init__(self, by: float):
        self.by = by

    def __call__(self, x):
        return x * self.by


class Nested:
    def __init__(self, factor: float):
        self.inner = types.SimpleNamespace(factor=factor, deeper=types.SimpleNamespace(offset=0.0))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.act, self.function, self.several = nn.GELU(), F.gelu, [F.relu, F.silu]
        self.bound = functools.partial(F.leaky_relu, negative_slope=0.1)
        self.config, self.numbers = Configuration(2.0), Numbers(1.0)
        self.tables, self.named = [torch.arange(4.0)], {"one": torch.ones(4)}
        self.pair, self.slots, self.nested = Pair(1.0, 2.0), Slots(1, ["a"]), Nested(1.0)
        self.wide, self.dims, self.called = np.float32(1.5), {-1}, Scaling(2.0)

    def weighted(self, x):
        return 3 * x

    def forward(self, x):
        y = self.several[0](self.act(x) * self.config.scale) + self.function(x) * self.config.table
        y = self.weighted(self.bound(y)) + self.tables[0] * self.numbers.shift + self.named["one"]
        y = (y * self.pair.second) ** self.slots.power * self.nested.inner.factor + self.nested.inner.deeper.offset
        return self.called(y) * float(self.wide) + y.sum(tuple(self.dims), keepdim=True)


CHANGES = {
    "a submodule": lambda m: setattr(m, "act", nn.ReLU()),
    "a function": lambda m: setattr(m, "function", F.relu),
    "a function in a list": lambda m: m.several.__setitem__(0, F.silu),
    "a partial function": lambda m: setattr(m, "bound", functools.partial(F.leaky_relu, negative_slope=0.5)),
    "a method": lambda m: setattr(m, "weighted", lambda x: 5 * x),
    "an object": lambda m: setattr(m, "config", Configuration(3.0)),
    "an object of other numbers": lambda m: setattr(m, "numbers", Numbers(4.0)),
    "a tensor in an object": lambda m: setattr(m.config, "table", torch.full((4,), 7.0)),
    "a tensor in a list": lambda m: m.tables.__setitem__(0, torch.full((4,), 7.0)),
    "a tensor in a dict": lambda m: m.named.__setitem__("one", torch.full((4,), 7.0)),
    "a list": lambda m: setattr(m, "tables", [torch.full((4,), 7.0)]),
    "nothing in a list": lambda m: m.several.pop(),
    "a named tuple": lambda m: setattr(m, "pair", Pair(1.0, 3.0)),
    "a slot": lambda m: setattr(m.slots, "power", 2),
    "a dataclass of slots": lambda m: setattr(m, "slots", Slots(3, ["a"])),
    "a number in an object in an object": lambda m: setattr(m.nested.inner, "factor", 2.0),
    "a number still deeper": lambda m: setattr(m.nested.inner.deeper, "offset", 2.0),
    "an object in an object": lambda m: setattr(m.nested, "inner", Nested(4.0).inner),
    "a number of numpy": lambda m: setattr(m, "wide", np.float32(2.5)),
    "an object that is called": lambda m: setattr(m, "called", Scaling(3.0)),
    "a number in an object that is called": lambda m: setattr(m.called, "by", 3.0),
    "a set": lambda m: m.dims.add(0),
}


def composed() -> tuple[ComposedModule, Reader]:
    module = Reader().eval()
    held = trace_module(module, (torch.zeros(3, 4),))
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    return ComposedModule(module, {"graph": held.graph, "steps": steps}, constants=held.constants), module


def same(made: ComposedModule, module: Reader) -> None:
    x = torch.randn(3, 4)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(made(x), module(x))


@pytest.mark.parametrize("change", CHANGES)
def test_another_one_is_seen(change):
    made, module = composed()
    same(made, module)
    assert not made.status()["fallbacks"]
    CHANGES[change](module)
    same(made, module)
    assert [f["count"] for f in made.status()["fallbacks"]] == [1]


def test_content_is_read_in_the_call():
    made, module = composed()
    module.config.table.mul_(3), module.tables[0].add_(1)
    same(made, module)
    assert not made.status()["fallbacks"]


def test_an_equal_object_may_stand_for_another():
    made, module = composed()
    module.numbers = Numbers(1.0, unused=9.0)  # the graph reads no tensor of it
    same(made, module)
    module.numbers.shift = 2.0  # of the one that stands there now
    same(made, module)
    assert [f["count"] for f in made.status()["fallbacks"]] == [1]


def test_what_a_forward_leaves_behind_does_not_count():
    class Leaving(nn.Module):
        def forward(self, x):
            self.seen = [x.sum()]
            return 2 * x

    module = Leaving().eval()
    guard = Attributes(module)
    module(torch.ones(2))
    assert guard.changed() is None
    guard = Attributes(module)
    module(torch.ones(2))
    assert guard.changed() is None


def test_a_tensor_that_gives_its_shape_alone():
    class Sized(nn.Module):
        def __init__(self):
            super().__init__()
            self.sizes = torch.randn(3)

        def forward(self, x):
            return x * self.sizes.shape[0]

    module = Sized().eval()
    guard = Attributes(module)
    module.sizes = torch.randn(3)
    assert guard.changed() is None
    module.sizes = torch.randn(4)
    assert "sizes" in guard.changed()
