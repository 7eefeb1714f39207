"""State outside of a module that its forward changes: found wherever its code finds it, put back, and as eager leaves it afterwards."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
import random
import sys
import types
import warnings
from pathlib import Path

import numpy
import pytest
import tessera
import torch
from tessera.common.errors import Error
from tessera.parts import ModuleInParts
from tessera.running import leftover
from tessera.tracing.python_state import changes_of_calls
from torch import nn
from torch.utils.data import DataLoader

HERE = Path(__file__).resolve().parent
X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))

SETTINGS = types.ModuleType("settings_of_a_test")  # without a file, as a session's
sys.modules[SETTINGS.__name__] = SETTINGS
exec("STEP, WORDS = 1.0, {'a': 1}\ndef advanced():\n    global STEP\n    STEP = STEP + 1\n", vars(SETTINGS))

HEARD, BYTES, TABLES = collections.deque([1.0]), bytearray(2), {"rows": numpy.ones(3)}
NUMBER, NORM, ORDINARY = 0, nn.BatchNorm1d(4), {"scale": 2.0}


class Kept:
    size = 1

    @classmethod
    def grown(cls):
        cls.size += 1


class Below(Kept):
    pass


class Scaling:
    def __init__(self):
        self.by = 1.0

    def __call__(self, x):
        self.by += 1
        return x * self.by


class Telling:
    @property
    def last(self):
        return HEARD[-1]

    @last.setter
    def last(self, value):
        HEARD.append(value)


SCALING = Scaling()


class Base(nn.Module):
    def __init__(self, **held):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        vars(self).update(held)


def module(forward, **held) -> nn.Module:
    return type("Module", (Base,), {"forward": lambda self, x: forward(self, x)})(**held).eval()


def heard(x):
    HEARD.append(float(len(HEARD)))
    return x * HEARD[-1]


def in_a_helper(self, x):
    return heard(x)


def in_a_list_of_functions(self, x):
    for f in self.functions:
        x = f(x)
    return x


def of_a_python_module(self, x):
    SETTINGS.STEP = 1 + SETTINGS.STEP
    return x * SETTINGS.STEP


def by_a_function_of_it(self, x):
    SETTINGS.advanced()
    return x * 2


def by_its_name(self, x):
    setattr(SETTINGS, "STEP", getattr(SETTINGS, "STEP") * 2)  # noqa: B009, B010
    return x


def imported(self, x):
    import settings_of_a_test as settings

    settings.WORDS["a"] += 1
    return x


def of_a_class(self, x):
    Kept.grown()
    return x * Kept.size


def of_a_class_below(self, x):
    Below.size = Below.size + 1
    return x


def new_in_a_class(self, x):
    Kept.latest = object()
    return x


def a_new_global(self, x):
    global LATEST
    LATEST = object()
    return x


def among_globals(self, x):
    globals()["NUMBER"] += 1
    return x * NUMBER


def of_bytes(self, x):
    BYTES[0] += 1
    return x


def of_an_array(self, x):
    TABLES["rows"][1] *= 2
    return x


def of_an_object(self, x):
    return SCALING(x)


def by_a_property(self, x):
    self.telling.last = float(len(HEARD))
    return x


def of_a_norm(self, x):
    return NORM(x)


EACH = [
    (in_a_helper, {}, "HEARD"),
    (in_a_list_of_functions, {"functions": [torch.relu, heard]}, "HEARD"),
    (of_a_python_module, {}, "STEP"),
    (by_a_function_of_it, {}, "STEP"),
    (by_its_name, {}, "STEP"),
    (imported, {}, "WORDS"),
    (of_a_class, {}, "Kept.size"),
    (of_a_class_below, {}, "Below.size"),
    (new_in_a_class, {}, "Kept.latest"),
    (a_new_global, {}, "LATEST"),
    (among_globals, {}, "NUMBER"),
    (of_bytes, {}, "BYTES"),
    (of_an_array, {}, "TABLES"),
    (of_an_object, {}, "SCALING.by"),
    (by_a_property, {"telling": Telling()}, "HEARD"),
    (of_a_norm, {}, "NORM"),
]


def outside() -> str:
    numbers = [SETTINGS.STEP, SETTINGS.WORDS, HEARD, BYTES, TABLES["rows"].tolist(), NUMBER, Kept.size, Below.size]
    there = ["size" in vars(Below), hasattr(Kept, "latest"), "LATEST" in globals()]
    return repr([numbers, there, SCALING.by, NORM.running_mean.tolist(), NORM.num_batches_tracked.item()])


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """What one test changes is not another one's; the engine is a stand-in."""
    monkeypatch.setattr(leftover, "compile_inductor", lambda gm, inputs, *settings: gm.forward)
    monkeypatch.setenv("FAKE_ENGINE", "plain")
    torch.compiler.reset()
    NORM.train()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield
    reset()


def reset() -> None:
    global NUMBER
    HEARD.clear()
    HEARD.append(1.0)
    BYTES[:], TABLES["rows"][:], NUMBER, SCALING.by, Kept.size = bytes(2), 1, 0, 1.0, 1
    SETTINGS.STEP, SETTINGS.WORDS["a"] = 1.0, 1
    NORM.reset_running_stats()
    for own, name in ((Below, "size"), (Kept, "latest")):
        if name in vars(own):
            delattr(own, name)
    globals().pop("LATEST", None)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    binary = tmp_path / "tessera"
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_engine.py"} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("TESSERA_BINARY", str(binary))


@pytest.mark.parametrize(("forward", "held", "named"), EACH, ids=lambda x: getattr(x, "__name__", None))
def test_what_each_call_changes_outside_is_named_and_put_back(forward, held, named):
    m, before = module(forward, **held), outside()
    reasons = changes_of_calls(m, (X,), {}, lambda: ((X * 2,), {})).reasons
    assert any(named in reason for reason in reasons), reasons
    assert outside() == before
    m(X)
    assert outside() != before or forward is new_in_a_class


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("forward", "held"),
    [(f, h) for f, h, _ in EACH if f in (in_a_helper, of_a_python_module, of_a_class, among_globals, of_an_object)],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_calls_of_the_optimized_module_leave_what_eager_leaves(forward, held):
    m = module(forward, **held)
    wanted = [m(X) for _ in range(3)]
    after = outside()
    reset()
    fast = tessera.optimize(m, X, progress=False)
    assert isinstance(fast, ModuleInParts)
    for want in wanted:
        torch.testing.assert_close(fast(X), want)
    assert outside() == after


# --- what cannot be put back -----------------------------------------------------------------------------------------


def numbers():
    yield from itertools.count(1.0)


def number(numbers) -> float:
    found = next(numbers)
    return float(found[0] if isinstance(found, tuple) else found)


TURNS = None


def of_a_generator(self, x):
    return x * number(self.steps)


def of_a_global_iterator(self, x):
    return x * number(TURNS)


MADE = {
    "generator": numbers,
    "cycle": lambda: itertools.cycle(map(float, range(1, 98))),
    "map": lambda: map(float, range(1, 9)),
    "keys": lambda: iter({1.0: 0, 2.0: 0, 3.0: 0}),
    "pairs": lambda: zip([1.0, 2.0, 3.0], strict=True),
    "of a library": lambda: iter(DataLoader([1.0, 2.0, 3.0], batch_size=None)),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("forward", [of_a_generator, of_a_global_iterator])
def test_no_call_is_made_of_what_no_picture_puts_back(made, forward, monkeypatch):
    monkeypatch.setitem(globals(), "TURNS", MADE[made]())
    m = module(forward, steps=MADE[made]())
    fast = tessera.optimize(m, X, progress=False)
    assert fast.status()["runner"] == "eager"
    again = MADE[made]()
    for _ in range(3):
        torch.testing.assert_close(fast(X), X * number(again))


def test_an_argument_that_is_an_iterator_is_left_alone():
    given = numbers()
    with pytest.raises(Error) as e:
        changes_of_calls(module(lambda self, x: x * next(x)), ({"steps": [given]},), {}, lambda: ((X,), {}))
    assert e.value.diagnostic["data"]["differs"] and next(given) == 1


def test_what_a_partial_function_holds():
    given = numbers()
    with pytest.raises(Error):
        changes_of_calls(
            module(lambda self, x: self.f(x), f=functools.partial(scaled, given)), (X,), {}, lambda: ((X,), {})
        )
    assert next(given) == 1


def scaled(steps, x):
    return x * next(steps)


def test_a_file_is_not_read_before_the_first_call(tmp_path):
    (tmp_path / "lines").write_text("1\n2\n3\n")
    with (tmp_path / "lines").open() as lines:
        m = module(lambda self, x: x * float(self.lines.readline()), lines=lines)
        with pytest.raises(Error) as e:
            changes_of_calls(m, (X,), {}, lambda: ((X,), {}))
        assert "`lines`" in e.value.diagnostic["message"] and float(lines.readline()) == 1


def test_iterators_that_no_code_names_are_left_alone():
    m = module(lambda self, x: self.fc(x), steps=numbers(), stream=sys.stdout, other={"steps": [numbers()]})
    assert changes_of_calls(m, (X,), {}, lambda: ((X,), {})).reasons == []


def test_iterators_that_can_be_set_are_set_back():
    m = module(lambda self, x: x * next(self.steps), steps=iter([1.0, 2.0, 3.0]))
    assert changes_of_calls(m, (X,), {}, lambda: ((X,), {})).reasons == ["it changes `steps`"]
    assert next(m.steps) == 1


CHANCE = random.Random(5)


@pytest.mark.usefixtures("engine")
def test_numbers_of_a_generator_of_its_own():
    m = module(lambda self, x: x * CHANCE.random())
    fast, alike = tessera.optimize(m, X, progress=False), random.Random(5)
    for _ in range(3):
        torch.testing.assert_close(fast(X), X * alike.random())


# --- modules that change nothing ---------------------------------------------------------------------------------------


class Kind(enum.Enum):
    TANH, RELU = "tanh", "relu"


@dataclasses.dataclass
class Config:
    kind: Kind = Kind.TANH
    sizes: tuple[int, ...] = (4, 4)


CONFIG = Config()


def test_ordinary_modules_are_called_once():
    calls = 0

    def forward(self, x):
        self.fc(x)
        y = torch.tanh(x) if CONFIG.kind is Kind.TANH and Config.sizes else x
        return SETTINGS.STEP * y * ORDINARY["scale"] + Below.size

    m, before = module(forward), outside()

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal calls
            calls += func is torch.ops.aten.tanh.default
            return func(*args, **(kwargs or {}))

    with Counting():
        changes = changes_of_calls(m, (X,), {}, lambda: ((X,), {}))
    assert (changes.reasons, changes.made, calls, outside()) == ([], [], 1, before)


def test_what_the_first_call_makes_outside_stays():
    tables = {}

    def table(n):
        if n not in tables:
            tables[n] = torch.arange(n).float()
        return tables[n]

    changes = changes_of_calls(module(lambda self, x: x + table(4)), (X,), {}, lambda: ((X * 2,), {}))
    assert changes.reasons == [] and any("tables" in name for name in changes.made) and list(tables) == [4]
