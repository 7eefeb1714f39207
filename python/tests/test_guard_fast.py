"""The extension's comparison and Python's guards: what the first lets pass the second lets pass, and what the second lets pass the
first does from then on."""

from __future__ import annotations

import functools
import gc
import random
import threading
import weakref

import pytest
import torch
from guarding import composed, served
from tessera.running import fast_guard
from tessera.running.guards import Miss
from torch import nn


class Everything(nn.Module):
    """Something of each kind that is compared."""

    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.inner.weight
        self.register_buffer("seen", torch.randn(4))
        self.number, self.several, self.named, self.members = 2.0, [1, [0.0]], {"a": 1}, {1, 2}

    def forward(self, x, y, by=2.0):
        self.seen.add_(y[0])
        z = self.tied(self.norm(self.inner(x))) * self.number + y * by * self.several[1][0] * self.named["a"]
        return z + self.seen + len(self.members)


def data(t: torch.Tensor):
    def change():
        before, t.data = t.data, torch.randn(t.shape)
        return lambda: setattr(t, "data", before)

    return change


def setting(place, name: str, value):
    def change():
        before = getattr(place, name)
        setattr(place, name, value)
        return lambda: setattr(place, name, before)

    return change


def entry(container, key, value):
    def change():
        before = container[key]
        container[key] = value
        return lambda: container.__setitem__(key, before)

    return change


def hooked(m: nn.Module):
    return lambda: m.register_forward_hook(lambda *a: None).remove


def changes(m: Everything) -> list:
    """Each changes something when called and gives what changes it back."""
    return [
        data(m.inner.weight),
        data(m.seen),
        setting(m.inner, "weight", nn.Parameter(torch.randn(4, 4))),
        setting(m.inner, "bias", None),
        setting(m, "seen", torch.randn(4)),
        setting(m, "seen", m.norm.bias.data[:]),
        setting(m, "norm", nn.LayerNorm(4)),
        setting(m.norm, "eps", 1e-3),
        setting(m, "number", 2),
        setting(m, "number", float("2.0")),
        setting(m, "several", [1, [0.0]]),
        entry(m.several[1], 0, -0.0),
        entry(m.named, "a", True),
        lambda: (m.members.add(3), lambda: m.members.discard(3))[1],
        lambda: (m.several.append(1), m.several.pop)[1],
        lambda: (m.train(), m.eval)[1],
        lambda: (setattr(m, "late", 1), lambda: delattr(m, "late"))[1],
        lambda: (setattr(m, "extra_repr", repr), lambda: delattr(m, "extra_repr"))[1],
        hooked(m.inner),
        setting(Everything, "forward", lambda self, x, y: x),
        lambda: (torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32))[1],
        lambda: (torch.set_grad_enabled(True), lambda: torch.set_grad_enabled(False))[1],
        lambda: (torch.use_deterministic_algorithms(True), lambda: torch.use_deterministic_algorithms(False))[1],
    ]


def call(m: Everything, rng: random.Random) -> tuple[tuple, dict]:
    base, x = torch.randn(64), torch.randn(3, 4)
    y = rng.choice(
        [torch.randn(3, 4)] * 6
        + [
            x,
            base[1:13].view(3, 4),
            torch.randn(4, 3).t(),
            torch.randn(3, 4).double(),
            m.norm.weight,
            torch.randn(2, 4),
        ]
        + [m.seen.expand(3, 4), torch.randn(3, 4).to_sparse(), None, torch.ones(3, 4).requires_grad_()]
    )
    by = rng.choice([2.0] * 6 + [2, True, float("2.0"), -2.0, None])
    return rng.choice(
        [((x, y), {}), ((x, y, by), {}), ((x,), {"y": y}), ((x,), {"by": by, "y": y}), ((), {"y": y, "x": x})]
    )


@pytest.mark.parametrize("seed", range(3))
def test_both_agree_on_random_changes(seed):
    assert fast_guard.extension()[0] is not None, fast_guard.status()
    rng = random.Random(seed)
    torch.manual_seed(seed)
    m = Everything()
    made = composed(m, torch.randn(3, 4), torch.randn(3, 4))
    guard, passed, missed, back = made._guard, 0, 0, []
    possible = changes(m)
    try:
        torch.set_grad_enabled(False)
        for _ in range(400):
            if rng.random() < 0.4 or len(back) > 2:
                while back and rng.random() < 0.8:
                    back.pop()()
            elif rng.random() < 0.5:
                back.append(rng.choice(possible)())
            args, kwargs = call(m, rng)
            fast = guard._fast(args, kwargs) if guard._fast is not None else None
            closely = guard.closely(args, kwargs)
            if type(closely) is Miss:
                assert fast is None, closely
                missed += 1
                continue
            assert fast is None or all(a is b for a, b in zip(fast, closely, strict=True))
            passed += 1
            given = [*args, *kwargs.values()]
            if all(any(t is g for g in given) for t in closely):  # else one was copied
                again = guard._fast(args, kwargs)
                assert again is not None and all(a is b for a, b in zip(again, closely, strict=True))
    finally:
        while back:
            back.pop()()
        torch.set_grad_enabled(True)
    assert passed > 40 and missed > 40, (passed, missed)


def test_tensors_in_lists_and_dictionaries():
    class Nested(nn.Module):
        def forward(self, several, by):
            return {"sum": several[0] * by["a"] + several[1] * by["n"]}

    def call(n=2.0):
        return [torch.randn(4), torch.randn(4)], {"a": torch.randn(4), "n": n}

    made = composed(Nested(), *call())
    assert served(made, *call())
    looks, closely = [], made._guard.closely
    made._guard.closely = lambda *given: (looks.append(1), closely(*given))[1]
    assert served(made, *call()) and not looks
    assert not served(made, *call(2)) and not served(made, call()[0][:1] * 2, call()[1]) and len(looks) == 4
    assert served(made, *call())


def test_nothing_is_kept_alive():
    m = nn.Linear(4, 4)
    made = composed(m, torch.randn(3, 4))
    with torch.no_grad():
        made(torch.randn(3, 4))
    m.itself = made  # a circle through what the extension holds
    assert made._guard._fast is not None
    gone = weakref.ref(m)
    del m, made
    gc.collect()
    assert gone() is None


def test_without_the_extension_python_is_asked(monkeypatch):
    monkeypatch.setattr(fast_guard, "at_hand", lambda: (None, "for a test"))
    made = composed(nn.Linear(4, 4), torch.randn(3, 4))
    with torch.no_grad():
        made(torch.randn(3, 4)), made(torch.randn(2, 4))
    status = made.status()
    assert made._guard._fast is None and status["served"] == 1 and status["guards"]["reason"] == "for a test"


def test_no_call_waits_for_the_compiler(monkeypatch):
    module, there = fast_guard.extension()[0], threading.Event()

    @functools.cache
    def slow():
        there.wait(60)
        return module, ""

    monkeypatch.setattr(fast_guard, "_extension", slow)
    monkeypatch.setattr(fast_guard, "_compiling", functools.cache(fast_guard._compiling.__wrapped__))
    made = composed(nn.Linear(4, 4), torch.randn(3, 4))
    with torch.no_grad():
        made(torch.randn(3, 4)), made(torch.randn(3, 4))
        assert made._guard._fast is None and "is being compiled" in made.status()["guards"]["reason"]
        there.set()
        assert not fast_guard.wait(60)
        made(torch.randn(3, 4))
    status = made.status()
    assert made._guard._fast is not None and status["served"] == 3 and status["guards"]["kind"] == "extension"


def test_an_unknown_setting_is_refused():
    module, _ = fast_guard.extension()
    columns, three = ([], []), ([], [], [])
    with pytest.raises(KeyError, match="nonsense"):
        module.Guard(([], [], [], three, three, columns, columns, three, False, False, 16, ["nonsense"]))


def test_what_is_fed_after_a_change_that_was_undone():
    """The change makes the original run; after it the graph reads and writes the module's own tensors again."""

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("var", torch.ones(4))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0))
            self.var.mul_(0.9).add_(x.var(0))
            return (x - self.mean) / self.var

    m, theirs, x = Two(), Two(), torch.randn(8, 4)
    assert not fast_guard.wait(300)
    with torch.no_grad():
        ours = composed(m, x)
        theirs.load_state_dict(m.state_dict())
        for change in (False, False, True, False, False):
            kept = m.var, theirs.var
            if change:
                m.var, theirs.var = m.mean, theirs.mean
            assert torch.equal(ours(x), theirs(x))
            if change:
                m.var, theirs.var = kept
            assert torch.equal(m.mean, theirs.mean) and torch.equal(m.var, theirs.var)
    assert [f["kind"] for f in ours.status()["fallbacks"]] == ["overlap"]
