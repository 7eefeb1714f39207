"""What forward reads is watched, or the module is captured by Dynamo, which follows such code and guards it."""

from __future__ import annotations

import collections
import collections.abc
import ctypes
import functools
import logging
import re
import threading
import time
import types
import typing
import weakref

import pytest
import tessera
import torch
from tessera.running.attributes import Attributes
from tessera.running.code_reads import CodeReads
from tessera.tracing.asked import look
from tessera.tracing.python_state import changes_of_calls
from torch import nn

LOG = logging.getLogger("unseen")
SCALES = [lambda x: x * FACTOR]
FACTOR = 2.0
GATE = nn.Linear(4, 4)
TABLE = torch.tensor([3, 1])
SETTINGS = types.ModuleType("settings_of_a_user")
SETTINGS.depth = 3


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.no_grad():
        yield


@functools.singledispatch
def gained(kind, x):
    return x


@gained.register
def _(kind: float, x):
    return x * 2


def scaled_by_a_list(x):
    return x * FACTORS[0]


FACTORS = [2.0]
REGISTRY = {**{f"n{i}": torch.sin for i in range(64)}, "scaled": scaled_by_a_list}


class Once:
    def act(self, x):
        return x


class Twice:
    def act(self, x):
        return x * 2


class Acting(Once):
    pass


class Table1100:
    pass


for _i in range(1100):
    setattr(Table1100, f"c{_i}", float(_i))


class Bag:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Doubling:
    factor = 2.0

    def __call__(self, x):
        return x * self.factor


def module_of(forward, **attributes) -> nn.Module:
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            for name, value in attributes.items():
                object.__setattr__(self, name, value)

    Made.forward = forward
    return Made().eval()


def change_of(owner, name: str, value):
    return lambda m: setattr(owner(m) if isinstance(owner, types.FunctionType) else owner, name, value)


WATCHED = {
    "a format": (
        lambda s, x: x.contiguous(memory_format=s.f),
        dict(f=torch.contiguous_format),
        "f",
        torch.preserve_format,
    ),
    "an ellipsis": (lambda s, x: x[s.at], dict(at=...), "at", 0),
    "an ellipsis within": (lambda s, x: x[s.at], dict(at=(..., 0)), "at", (0, 0)),
    "a pattern": (lambda s, x: x * bool(s.r.match("a")), dict(r=re.compile("a")), "r", re.compile("b")),
    "members of members": (lambda s, x: x * len(s.k), dict(k=frozenset({(1, 2)})), "k", frozenset({(1, 2), (3,)})),
    "an asking function": (lambda s, x: x * s.ask(), dict(ask=torch.is_grad_enabled), "ask", bool),
}


@pytest.mark.parametrize("name", WATCHED)
def test_values_of_every_kind(name):
    forward, attributes, attribute, other = WATCHED[name]
    module = module_of(forward, **attributes)
    attributes, code = Attributes(module), CodeReads(module)
    assert attributes.changed() is None and code.changed() is None and not code.unseen
    setattr(module, attribute, other)
    assert attributes.changed() or code.changed()


def _deep(levels: int, leaf):
    for _ in range(levels):
        leaf = {"next": leaf}
    return leaf


WITHIN = {
    "six dictionaries deep": (dict(c=_deep(6, {"k": 2})), lambda m: _at(m.c, 6).update(k=3)),
    "beside a lock": (dict(c=Bag(lock=threading.Lock(), inner=Bag(k=2))), lambda m: setattr(m.c.inner, "k", 3)),
    "in a list, beside a lock": (dict(c=[Bag(lock=threading.RLock(), k=2)]), lambda m: setattr(m.c[0], "k", 3)),
    "a tensor in a dictionary": (dict(c={"m": torch.ones(3)}), lambda m: m.c.update(m=None)),
    "a tensor in an object": (dict(c=Bag(t=torch.ones(3))), lambda m: setattr(m.c, "t", torch.ones(4))),
    "a logger's level": (dict(c=LOG), lambda m: LOG.setLevel(LOG.getEffectiveLevel() + 1)),
}


def _at(found, levels: int):
    for _ in range(levels):
        found = found["next"]
    return found


@pytest.mark.parametrize("name", WITHIN)
def test_what_things_hold(name):
    held, change = WITHIN[name]
    module = module_of(lambda s, x: x, **held)
    found = Attributes(module)
    assert found.changed() is None
    change(module)
    assert found.changed()


def _local(s, x):
    from_elsewhere = SETTINGS
    return x * from_elsewhere.depth


CODE = {
    "a function in a list": (lambda s, x: SCALES[0](x), {}, change_of(lambda m: SCALES[0], "__defaults__", (1,))),
    "what a function in a list reads": (lambda s, x: SCALES[0](x), {}, lambda m: globals().update(FACTOR=5.0)),
    "a called object in a list": (lambda s, x: s.ops[0](x), dict(ops=[Doubling()]), change_of(Doubling, "factor", 4.0)),
    "a Python module under another name": (_local, {}, change_of(SETTINGS, "depth", 4)),
    "a Python module as attribute": (lambda s, x: x * s.c.depth, dict(c=SETTINGS), change_of(SETTINGS, "depth", 5)),
    "a Python module asked by name": (lambda s, x: x * getattr(SETTINGS, "depth"), {}, change_of(SETTINGS, "depth", 6)),  # noqa: B009
    "another function for a type": (
        lambda s, x: gained(1.0, x),
        {},
        lambda m: gained.register(float, lambda kind, x: x * 3),
    ),
    "what a function in a long registry reads": (
        lambda s, x: REGISTRY["scaled"](x),
        {},
        lambda m: FACTORS.__setitem__(0, FACTORS[0] + 1),
    ),
    "an entry of a large class": (
        lambda s, x: x * Table1100.c7,
        {},
        lambda m: setattr(Table1100, "c7", Table1100.c7 + 1),
    ),
    "another base": (
        lambda s, x: s.acting.act(x),
        dict(acting=Acting()),
        lambda m: setattr(Acting, "__bases__", (Twice if Acting.__bases__ == (Once,) else Once,)),
    ),
    "a function for another type": (lambda s, x: gained(1.0, x), {}, lambda m: gained.register(str, lambda kind, x: x)),
    "threads": (
        lambda s, x: x * torch.get_num_threads(),
        {},
        lambda m: torch.set_num_threads(torch.get_num_threads() + 1),
    ),
    "a setting that is a property": (
        lambda s, x: x * torch.backends.cudnn.benchmark,
        {},
        lambda m: setattr(torch.backends.cudnn, "benchmark", not torch.backends.cudnn.benchmark),
    ),
    "gradients of a parameter": (
        lambda s, x: x * s.layer.weight.requires_grad,
        {},
        lambda m: m.layer.weight.requires_grad_(False),
    ),
}


@pytest.mark.parametrize("name", CODE)
def test_what_code_reads(name, monkeypatch):
    forward, attributes, change = CODE[name]
    before = torch.get_num_threads(), torch.backends.cudnn.benchmark, SETTINGS.depth, FACTOR, Doubling.factor
    found = CodeReads(module := module_of(forward, **attributes))
    try:
        assert found.changed() is None and not found.unseen
        change(module)
        assert found.changed()
    finally:
        torch.set_num_threads(before[0])
        torch.backends.cudnn.benchmark, SETTINGS.depth, Doubling.factor = before[1], before[2], before[4]
        globals().update(FACTOR=before[3])
        SCALES[0].__defaults__ = None


def test_flags_and_sizes_that_the_users_code_reads():
    def forward(s, x):
        return x * s.layer.in_features * (2 if s.layer.training else 1)

    module = module_of(forward)
    found = Attributes(module, loaded=CodeReads(module).loaded)
    module.layer.in_features = 5
    assert found.changed() and "training" in CodeReads(module).loaded
    plain = module_of(lambda s, x: s.layer(x))
    found = Attributes(plain, loaded=CodeReads(plain).loaded)
    plain.layer.in_features = 5
    assert found.changed() is None


class Slotted:
    __slots__ = ("gain",)

    def __init__(self):
        self.gain = 2.0


class Table(collections.abc.Mapping):
    kinds: typing.ClassVar = {"a": 2.0}

    def __getitem__(self, name):
        return self.kinds[name]

    def __iter__(self):
        return iter(self.kinds)

    def __len__(self):
        return len(self.kinds)


def test_slots_and_abstract_classes_are_seen(monkeypatch):
    m = module_of(lambda s, x: x * s.slotted.gain * s.table["a"], slotted=Slotted(), table=Table())
    code, attributes = CodeReads(m), Attributes(m)
    assert not code.unseen and not code.changed() and not attributes.changed()
    monkeypatch.setitem(Table.kinds, "a", 3.0)
    assert CodeReads(m) and code.changed()
    m.slotted.gain = 5.0
    assert attributes.changed()


Window = collections.namedtuple("Window", "size gain")  # noqa: PYI024


class Sized(typing.NamedTuple):
    size: int = 2


def test_fields_of_named_tuples_are_seen(monkeypatch):
    m = module_of(lambda s, x: x[: s.window.size] * s.window.gain + Sized().size, window=Window(3, 2.0))
    code, attributes = CodeReads(m), Attributes(m)
    assert not code.unseen and not code.changed() and not attributes.changed()
    m.window = Window(3, 3.0)
    assert attributes.changed()


class Importing(dict):
    """As a table of a library's, whose values are imported when they are asked for."""

    def items(self):
        raise ImportError("half a library")

    keys = values = __iter__ = items


KINDS = Importing(a=2.0)


def test_a_dictionary_is_read_past_its_class(monkeypatch):
    m = module_of(lambda s, x: x * KINDS["a"] * s.kinds["a"], kinds=Importing(a=2.0))
    code, attributes = CodeReads(m), Attributes(m)
    assert not code.unseen and not code.changed() and not attributes.changed()
    assert not changes_of_calls(m, (torch.ones(2, 4),), {}, lambda: ((torch.ones(2, 4),), {})).reasons
    m.kinds["a"] = 3.0
    assert attributes.changed()
    KINDS["a"] = 4.0
    assert code.changed()


UNSEEN = {
    "a number of C": (lambda s, x: x * s.c.value, dict(c=ctypes.c_double(2.0))),
    "a weak reference": (lambda s, x: x * s.c().factor, dict(c=weakref.ref(Doubling))),
    "values of a thread": (lambda s, x: x * s.c.scale, dict(c=threading.local())),
    "a generator": (lambda s, x: x * next(s.c), dict(c=(i for i in range(9)))),
    "a module in a list": (lambda s, x: s.c[0](x), dict(c=[nn.Linear(4, 4)])),
    "a module beside its children": (lambda s, x: s.c(x), dict(c=nn.Linear(4, 4))),
    "a global module": (lambda s, x: GATE(x), {}),
    "the clock": (lambda s, x: x * time.time(), {}),
    "a file": (lambda s, x: x * len(open(__file__).read()), {}),  # noqa: SIM115
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_cannot_be_watched_is_named(name):
    forward, attributes = UNSEEN[name]
    (what,) = CodeReads(module_of(forward, **attributes)).unseen
    assert what.startswith("`")
    assert CodeReads(module_of(lambda s, x: x, **attributes)).unseen == []  # forward does not read it


ASKED = {
    "requires_grad": lambda s, x: x * (2 if x.requires_grad else 1),
    "grad": lambda s, x: x if x.grad is None else x * 2,
    "storage_offset": lambda s, x: x * (1 + x.storage_offset()),
    "untyped_storage": lambda s, x: x * x.untyped_storage().nbytes(),
    "is_inference": lambda s, x: x * x.is_inference(),
    "tolist": lambda s, x: x[:, s.order.tolist()],
    "item": lambda s, x: x * TABLE[0].item(),
    "__float__": lambda s, x: x * float(s.order[0]),
    "__int__": lambda s, x: x * int(torch.zeros(1).copy_(s.order[:1])),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_tensors_are_asked(name):
    assert look(module_of(ASKED[name], order=torch.arange(4)), (torch.ones(2, 4),), {})[0] == [name]


@pytest.mark.parametrize(
    "forward",
    [
        lambda s, x: s.layer(x).relu() * s.layer.weight.requires_grad,
        lambda s, x: x * torch.linspace(0, 1, 3).tolist()[1],  # of numbers alone
        lambda s, x: nn.functional.multi_head_attention_forward(
            *[x[:, None]] * 3, 4, 2, torch.ones(12, 4), None, None, None, False, 0.0, torch.ones(4, 4), None
        )[0],
    ],
)
def test_what_is_asked_and_stays(forward):
    assert look(module_of(forward), (torch.ones(2, 4),), {})[0] == []


def test_dynamo_guards_what_a_trace_cannot():
    module, x = module_of(lambda s, x: x * float(s.scale), scale=torch.tensor(1.0)), torch.ones(2, 4)
    options = dict(seconds=2, effort="quick", progress=False, leftover="eager", only="library")
    made = tessera.optimize(module, (x,), **options)
    assert made.runner != "kernels" and "asks a tensor for `__float__`" in made.status()["reason"]
    assert torch.equal(made(x), x)
    module.scale.add_(1)
    assert torch.equal(made(x), x * 2)
