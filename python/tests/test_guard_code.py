"""What forward reads outside of the module: globals, what functions close over, classes, the functions that it calls, torch's hooks
for every module."""

from __future__ import annotations

import functools
import types

import pytest
import torch
import torch.nn.functional as F
from guarding import changed, composed, kinds, served
from tessera.running.code_reads import CodeReads
from torch import nn
from torch.nn.modules import module as torch_modules

TEMPERATURE = 2.0
CONFIG = {"t": 1.0, "l": [1, 2]}
SPACE = types.SimpleNamespace(shift=1.0, step=0)
TABLE = torch.ones(4)


class Settings:
    power = 2

    def __init__(self):
        self.factor, self.step = 3.0, 0

    def scale(self):
        return self.factor * Settings.power


SETTINGS = Settings()


def _by(number):
    def inner(x, offset=0.5):
        return x * number + offset

    return inner


current: list[nn.Module] = []
closure = _by(3)
wrapped = functools.partial(F.leaky_relu, negative_slope=0.1)


def _halved(x):
    return x / TEMPERATURE


class Base(nn.Module):
    K = 0.5

    def helper(self, x):
        return x + 1


class Reader(Base):
    NUMBERS = [1.0, 2.0]  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    @property
    def gain(self):
        return 1.5

    def forward(self, x):
        y = closure(_halved(self.inner(x))) * self.K * CONFIG["t"] + SPACE.shift + TABLE * SETTINGS.scale()
        y = wrapped(self.helper(y)) * self.NUMBERS[1] + torch.nn.functional.gelu(x) * len(CONFIG["l"]) * self.gain
        y = y if self.inner.weight.grad is None else y * self.inner.weight.grad.sum()
        return next(y * k for k in self.NUMBERS) + F.relu(x)


def entry(container, key, value):
    def change():
        before = container[key]
        container[key] = value
        return lambda: container.__setitem__(key, before)

    return change


def attribute(place, name, value):
    def change():
        with_before = changed(place, name, value)
        with_before.__enter__()
        return lambda: with_before.__exit__(None, None, None)

    return change


def hook(register):
    def change():
        return register(lambda module, args, *result: result[0] * 2 if result else None).remove

    return change


CHANGES = {
    "a global": entry(globals(), "TEMPERATURE", 3.0),
    "a global's kind": entry(globals(), "TEMPERATURE", 2),
    "a global that is a tensor": entry(globals(), "TABLE", torch.full((4,), 2.0)),
    "an entry of a global": entry(CONFIG, "t", -0.0),
    "a list in a global": lambda: (CONFIG["l"].append(3), lambda: CONFIG["l"].pop())[1],
    "another global object": entry(globals(), "SPACE", types.SimpleNamespace(shift=5.0)),
    "an attribute of a global": attribute(SPACE, "shift", 7.0),
    "an attribute of an object of the user's": attribute(SETTINGS, "factor", 4.0),
    "an attribute of its class": attribute(Settings, "power", 3),
    "a method of its class": attribute(Settings, "scale", lambda self: 1.0),
    "a function": entry(globals(), "_halved", lambda x: x / 4),
    "a function's code": attribute(_halved, "__code__", (lambda x: x / 8).__code__),
    "a function's defaults": attribute(closure, "__defaults__", (0.25,)),
    "what a function closes over": attribute(closure.__closure__[0], "cell_contents", 5),
    "a partial function": entry(globals(), "wrapped", functools.partial(F.leaky_relu, negative_slope=0.7)),
    "a class attribute": attribute(Base, "K", 0.7),
    "one that hides the base's": lambda: (setattr(Reader, "K", 0.7), lambda: delattr(Reader, "K"))[1],
    "one of the module that hides the class's": lambda: (
        setattr(current[0], "K", 0.7),
        lambda: delattr(current[0], "K"),
    )[1],
    "a list of the class": entry(Reader.NUMBERS, 1, 3.0),
    "a method of the base": attribute(Base, "helper", lambda self, x: x - 1),
    "a property": attribute(Reader, "gain", property(lambda self: 2.5)),
    "the class's forward": attribute(Reader, "forward", lambda self, x: x * 9),
    "the forward of torch's class": attribute(nn.Linear, "forward", lambda self, x: x * 9),
    "a function of torch's": attribute(F, "relu", lambda x: x * 9),
    "a function of torch's that torch's class calls": attribute(F, "linear", lambda x, w, b: x * 9),
    "a submodule's class": lambda: attribute(current[0].inner, "__class__", nn.Identity)(),
    "a function of torch's by its full name": attribute(F, "gelu", lambda x: x * 9),
    "a gradient": lambda: attribute(current[0].inner.weight, "grad", torch.ones(4, 4))(),
    "a hook for every module": hook(torch_modules.register_module_forward_hook),
    "a hook before every module": hook(torch_modules.register_module_forward_pre_hook),
}


@pytest.fixture(scope="module")
def made():
    found = composed(Reader(), torch.randn(3, 4))
    current[:] = [found.original]
    return found


@pytest.mark.parametrize("what", CHANGES)
def test_each_is_seen(made, what):
    assert served(made, torch.randn(3, 4))
    before = kinds(made)
    back = CHANGES[what]()
    try:
        assert not served(made, torch.randn(3, 4))
        assert sum(kinds(made).values()) == sum(before.values()) + 2
    finally:
        back()
    assert served(made, torch.randn(3, 4))


def test_what_forward_does_not_read(made):
    assert served(made, torch.randn(3, 4))
    for place in (SPACE, SETTINGS):
        with changed(place, "step", place.step + 1):
            # An object whose methods are called may read all of itself.
            assert served(made, torch.randn(3, 4)) is (place is SPACE)


def test_equal_values_may_stand_for_others(made):
    equal = [
        ("TEMPERATURE", float("2.0")),
        ("CONFIG", {"t": 1.0, "l": [1, 2]}),
        ("SPACE", types.SimpleNamespace(shift=1.0)),
    ]
    for name, value in equal:
        back = entry(globals(), name, value)()
        assert served(made, torch.randn(3, 4)), name
        back()
    assert served(made, torch.randn(3, 4))


def test_hooks_for_every_module_are_run_once_a_module():
    made, seen = composed(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(3, 4)), []
    handle = torch_modules.register_module_forward_hook(lambda module, args, result: seen.append(type(module).__name__))
    with torch.no_grad():
        made(torch.randn(3, 4))
    handle.remove()
    assert seen == ["Linear", "ReLU", "Sequential"]


def test_gradients_are_watched_where_forward_asks_for_them(made):
    assert served(made, torch.randn(3, 4))
    with changed(made.original.inner.bias, "grad", torch.ones(4)):
        assert not served(made, torch.randn(3, 4))
    other = composed(nn.Sequential(nn.Linear(4, 4), AsksForAnother()), torch.randn(3, 4))
    with changed(other.original[0].weight, "grad", torch.ones(4, 4)):
        assert served(other, torch.randn(3, 4))


class AsksForAnother(nn.Module):
    """Names `grad` of a library's module alone."""

    def forward(self, x):
        return x * 2 if torch.autograd.grad is not None else x


def test_libraries_are_not_looked_into():
    found = CodeReads(Reader()).watched
    assert len(found.items[0]) + len(found.fields[0]) < 120
