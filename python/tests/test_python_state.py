"""What calls do in Python beside computing tensors: found by calling, and put back."""

from __future__ import annotations

import itertools
import random

import numpy
import pytest
import torch
from tessera.common.errors import Error
from tessera.tracing.held import hold
from tessera.tracing.python_state import changes_of_calls
from torch import nn

CALLS, SETTINGS, TABLES = 0, {"calls": 0}, {}
X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))


class Settings:
    def __init__(self):
        self.calls, self.total = 0, torch.zeros(4)


class Base(nn.Module):
    limit = 0

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.calls, self.mask, self.seen, self.tables = 0, None, [], {}
        self.settings, self.numbers, self.chance = Settings(), itertools.count(), random.Random(3)
        self.array, self.total = numpy.zeros(3), torch.zeros(4)


def module(forward) -> nn.Module:
    return type("Module", (Base,), {"forward": forward})()


def enclosing():
    calls = 0

    def forward(self, x):
        nonlocal calls
        calls += 1
        return x

    return forward


def counting(self, x):
    self.calls += 1
    return self.fc(x)


def remembering(self, x):
    self.last = self.fc(x)
    return self.last * 2


def growing(self, x):
    self.seen.append(x.shape)
    return x


def in_an_object(self, x):
    self.settings.calls += 1
    return x


def in_place_in_an_object(self, x):
    self.settings.total.add_(1)
    return x + self.settings.total


def in_an_array(self, x):
    self.array[0] += 1
    return x * float(self.array[0])


def of_the_class(self, x):
    type(self).limit += 1
    return x


def of_the_file(self, x):
    global CALLS
    CALLS += 1
    return x


def in_a_global(self, x):
    SETTINGS["calls"] += 1
    return x


def by_default(self, x, seen=[], *, of=Settings()):  # noqa: B006, B008
    seen.append(1)
    of.calls += 1
    return x * len(seen) * of.calls


def numbering(self, x):
    return x * next(self.numbers)


def of_its_own_chance(self, x):
    return x * self.chance.random()


def from_the_first_input(self, x):
    if self.mask is None:
        self.mask = x.mean()
    return x - self.mask


def gathering(self, x):
    if self.mask is None:
        self.mask = torch.zeros(4, 4)
    self.mask += x
    return self.mask * 1


@pytest.mark.parametrize(
    ("forward", "named"),
    [
        (counting, "`calls`"),
        (remembering, "`last`"),
        (growing, "`seen[1]`"),
        (in_an_object, "`settings.calls`"),
        (in_place_in_an_object, "`settings.total`"),
        (in_an_array, "`array`"),
        (of_the_class, "`Module.limit`"),
        (of_the_file, ".CALLS`"),
        (in_a_global, ".SETTINGS['calls']`"),
        (enclosing(), "forward.calls`"),
        (by_default, "by_default.seen[1]"),
        (numbering, "`numbers`"),
        (of_its_own_chance, "`chance`"),
        (from_the_first_input, "`mask`"),
        (gathering, "`mask`"),
        (lambda self, x: x * random.random(), "`random`"),
        (lambda self, x: x * numpy.random.rand(), "NumPy"),
        (lambda self, x: print("here") or x, "prints ('here')"),
    ],
)
def test_what_each_call_changes_is_named_and_put_back(forward, named, capsys):
    m = module(forward)
    held = (m.calls, m.mask, list(m.seen), m.settings.calls, CALLS, dict(SETTINGS), type(m).limit, m.chance.getstate())
    tensors = [t.clone() for t in (m.total, m.settings.total, torch.from_numpy(m.array))]
    drawn = random.getstate(), repr(numpy.random.get_state()), torch.get_rng_state()
    with pytest.raises(Error) as e:
        hold(m, (X,), {})
    assert e.value.diagnostic["code"] == "TS0202" and named in e.value.diagnostic["message"]
    assert "report" not in str(e.value)
    assert held == (m.calls, m.mask, m.seen, m.settings.calls, CALLS, SETTINGS, type(m).limit, m.chance.getstate())
    now = [m.total, m.settings.total, torch.from_numpy(m.array)]
    assert all(torch.equal(a, b) for a, b in zip(tensors, now, strict=True))
    assert drawn[:2] == (random.getstate(), repr(numpy.random.get_state())) and torch.equal(
        drawn[2], torch.get_rng_state()
    )
    assert not by_default.__defaults__[0] and by_default.__kwdefaults__["of"].calls == 0
    assert not hasattr(m, "last") and capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("forward", "named"),
    [
        (lambda self, x: setattr(self, "b", self.w) or x + 1, "`b`"),
        (lambda self, x: setattr(self, "total", self.w) or x + 1, "`total`"),
        (lambda self, x: setattr(self, "total", None) or x + 1, "`total`"),
        (lambda self, x: setattr(self, "b", None) or x + 1, "`b`"),
        (lambda self, x: setattr(self, "w", None) or x + 1, "`w`"),
        (lambda self, x: setattr(self, "fc", None) or x + 1, "`fc`"),
        (lambda self, x: self.w.requires_grad_(False) + x, "`w`"),
    ],
)
def test_what_a_call_takes_away_is_there_for_the_first_one(forward, named):
    """Later calls leave it as it is: it is not made by the first one, for what was there is gone."""
    m = module(forward)
    m.w = nn.Parameter(torch.ones(4))
    m.register_buffer("b", torch.zeros(4))
    held = m.w, m.b, m.total, m.fc
    with pytest.raises(Error, match="TS0202") as e:
        hold(m, (X,), {})
    assert named in e.value.diagnostic["message"]
    assert all(a is b for a, b in zip(held, (m.w, m.b, m.total, m.fc), strict=True)) and m.w.requires_grad
    assert list(dict(m.named_parameters())) == ["w", "fc.weight", "fc.bias"] and list(dict(m.named_buffers())) == ["b"]


def test_an_argument_that_is_changed():
    m = type("Module", (Base,), {"forward": lambda self, x, seen: seen.append(1) or x})()
    seen = []
    assert changes_of_calls(m, (X, seen), {}, lambda: ((X, []), {})).reasons and not seen


def masked(self, x):
    if self.mask is None:
        self.mask = torch.full((4, 4), -1e9).triu(1)
    return (x + self.mask).softmax(-1)


def by_size(self, x):
    if x.shape[0] not in self.tables:
        self.tables[x.shape[0]] = torch.arange(x.shape[0], dtype=x.dtype)
    return x + self.tables[x.shape[0]][:, None]


def kept_by_the_file(self, x):
    if x.shape not in TABLES:
        TABLES[x.shape] = torch.ones(x.shape)
    return x + TABLES[x.shape]


@pytest.mark.parametrize("forward", [masked, by_size, kept_by_the_file])
def test_what_the_first_call_makes_is_made_and_stays(forward):
    m, said = module(forward), []
    hold(m, (X,), {}, say=said.append)
    assert any("made now, and kept" in text for text in said)
    assert m.mask is not None or m.tables or TABLES
    made = m.mask, dict(m.tables), dict(TABLES)
    m(X)
    assert made[0] is m.mask and all(made[1][k] is m.tables[k] for k in m.tables)
    assert all(type(t) is torch.Tensor for t in (m.mask, *m.tables.values(), *TABLES.values()) if t is not None)


def test_lazy_modules_are_made_with_statistics_as_they_begin():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm = nn.LazyLinear(3), nn.LazyBatchNorm1d()

        def forward(self, x):
            return self.norm(self.fc(x))

    m = Lazy()
    changes = changes_of_calls(m, (X,), {}, lambda: ((X.flip(0),), {}))
    assert "fc.weight" in changes.made and not changes.reasons and type(m.fc) is nn.Linear and m.training
    assert m.norm.running_mean.eq(0).all() and m.norm.running_var.eq(1).all()


def halving(self, x):
    with torch.no_grad():
        self.fc.weight.mul_(0.5)
    return self.fc(x)


def filling(self, x):
    self.total.add_(1)
    return x + self.total


@pytest.mark.parametrize("forward", [halving, filling])
def test_tensors_that_calls_write_to_are_as_they_were(forward):
    m = module(forward)
    before = m.fc.weight.detach().clone(), m.total.clone()
    assert changes_of_calls(m, (X,), {}, lambda: ((X,), {})).reasons == []
    assert torch.equal(m.fc.weight, before[0]) and torch.equal(m.total, before[1])


def test_statistics_of_norms_are_as_they_were():
    m = nn.BatchNorm1d(4)
    state = {k: v.clone() for k, v in m.state_dict().items()}
    changes_of_calls(m, (X,), {}, lambda: ((X,), {}))
    assert all(torch.equal(v, m.state_dict()[k]) for k, v in state.items())


def test_weights_that_hooks_compute_are_no_state():
    m = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 4)), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)))
    assert changes_of_calls(m, (X,), {}, lambda: ((X,), {})).reasons == []


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
@pytest.mark.parametrize("training", [False, True])
def test_weights_that_hooks_compute_become_no_buffers(norm, training):
    m = nn.Sequential(norm(nn.Linear(4, 4))).train(training)
    names = [n for n, _ in m.named_buffers()]
    hold(m, (X,), {})
    assert [n for n, _ in m.named_buffers()] == names and "weight" in vars(m[0])


def test_a_module_that_fails_is_left_as_it_was():
    def forward(self, x):
        self.total.add_(1)
        self.calls += 1
        raise ValueError("no")

    m = module(forward)
    with pytest.raises(Error, match="ValueError: no") as e:
        hold(m, (X,), {})
    assert e.value.diagnostic["code"] == "TS0007" and m.calls == 0 and not m.total.any()


def test_what_the_first_call_computes_without_what_it_makes():
    """A later call gives another result with the same inputs: no trace holds both."""

    def forward(self, x):
        old = self.mask * 2
        self.mask = self.fc.bias
        return x + old

    m = module(forward)
    m.mask = torch.zeros(4)
    (reason,) = changes_of_calls(m, (X,), {}, lambda: ((X,), {})).reasons
    assert "mask" in reason and m.mask.eq(0).all()


@pytest.mark.parametrize("whose", ["state", "argument"])
def test_changes_of_a_shape_in_place(whose):
    def forward(self, x):
        (self.total if whose == "state" else x).unsqueeze_(0)
        return x + 1

    m = module(forward)
    shape = m.total.shape
    (reason,) = changes_of_calls(m, (X.clone(),), {}, lambda: ((X,), {})).reasons
    assert ("total" if whose == "state" else "argument") in reason and m.total.shape == shape
