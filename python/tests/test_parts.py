"""Modules that cannot be one graph, through tessera.optimize: captured in parts; the engine is a stand-in that answers without kernels."""

from __future__ import annotations

import copy
import pickle
import random
import re
import sys
import warnings
from pathlib import Path

import pytest
import tessera
import torch
from tessera import engine as engine_module
from tessera.common.errors import fail
from tessera.parts import ModuleInParts
from tessera.running import leftover
from torch import nn

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def engine(tmp_path_factory, monkeypatch):
    binary = tmp_path_factory.mktemp("engine") / "tessera"
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "fake_engine.py"} "$@"\n')
    binary.chmod(0o755)
    monkeypatch.setenv("TESSERA_BINARY", str(binary))
    monkeypatch.setenv("FAKE_ENGINE", "plain")
    # What goes to Inductor runs op by op here: its compiler takes seconds a graph, and is PyTorch's own.
    monkeypatch.setattr(leftover, "compile_inductor", lambda gm, inputs, *settings: gm.forward)
    torch.compiler.reset()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.calls, self.heard = nn.Linear(8, 8), 0, []


class Branching(Base):
    def forward(self, x):
        y = self.fc(x).relu()
        if y.sum() > 20:
            y = y * 2
        return self.fc(y).tanh()


class Experts(Base):
    """Each takes as many rows as its router gives it."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        chosen, out = self.fc(x)[:, :3].argmax(-1), torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (chosen == i).nonzero()[:, 0]
            if rows.numel():
                out[rows] = expert(x[rows]).tanh()
        return out


class Looping(Base):
    def forward(self, x):
        while x.abs().max() > 0.1:
            x = x.tanh() * 0.5
        return self.fc(x)


class Counting(Base):
    def forward(self, x):
        self.calls += 1
        return self.fc(x) * self.calls


class Remembering(Base):
    def forward(self, x):
        self.last = self.fc(x).relu()
        return self.last * 2


class Gathering(Base):
    def forward(self, x):
        self.heard.append(x.mean())
        return self.fc(x) + torch.stack(self.heard).sum()


class Chancy(Base):
    def forward(self, x):
        return self.fc(x) * random.random()


class Hooked(Base):
    def __init__(self):
        super().__init__()
        self.fc.register_forward_hook(doubled)

    def forward(self, x):
        return self.fc(x).tanh()


def doubled(module, args, result):
    return result * 2


class Overlapping(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4, 8))
        self.row = self.table[0:1]

    def forward(self, x):
        self.row.copy_(x[:1])
        return self.table * 2 + x[:4]


EVERY = [Branching, Experts, Looping, Counting, Remembering, Gathering, Chancy, Hooked, Overlapping]


def inputs(i: int) -> torch.Tensor:
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(i))


@pytest.mark.parametrize("cls", EVERY)
def test_every_call_gives_what_the_module_gives(cls):
    torch.manual_seed(0)
    m = cls().eval()
    ref = copy.deepcopy(m)
    if cls is Overlapping:
        ref.row = ref.table[0:1]
    fast = tessera.optimize(m, inputs(0), progress=False)
    assert isinstance(fast, ModuleInParts) and isinstance(fast, tessera.ComposedModule) and fast.original is m
    for i in range(20):
        random.seed(i)
        got = fast(inputs(i))
        random.seed(i)
        torch.testing.assert_close(got, ref(inputs(i)), rtol=1e-5, atol=1e-6)
    assert m.calls == ref.calls and len(m.heard) == len(ref.heard)
    status = fast.status()
    assert status["calls"] == 20 and status["reason"] and "report" not in status["reason"]
    assert list(fast.state_dict()) == list(ref.state_dict())


def test_status_names_graphs_and_places():
    fast = tessera.optimize(Branching(), inputs(0), progress=False)
    status = fast.status()
    assert [g["runner"] for g in status["graphs"]] == ["kernels", "kernels"]
    (place,) = status["not_captured"]
    line = Path(place["file"]).read_text().splitlines()[place["line"] - 1]
    assert place["file"] == __file__ and line.strip() == "if y.sum() > 20:" and "value of a tensor" in place["reason"]
    assert fast.report["graphs"] and fast.report["not_captured"] == status["not_captured"]


class Named(nn.Module):
    """State under names that the result has for its own."""

    def __init__(self, names, branches: bool):
        super().__init__()
        self.names, self.branches = names, branches
        for kind, name in enumerate(names):
            if kind % 3 == 0:
                self.add_module(name, nn.Linear(8, 8))
            elif kind % 3 == 1:
                self.register_buffer(name, torch.randn(8))
            else:
                self.register_parameter(name, nn.Parameter(torch.randn(8)))

    def forward(self, x):
        for name in self.names:
            held = getattr(self, name)
            x = torch.tanh(held(x) if isinstance(held, nn.Module) else x + held)
        return x.cos() if self.branches and x.sum() > 20 else x.sin()


@pytest.mark.parametrize("branches", [False, True])
def test_state_may_have_any_name(branches):
    own = tessera.optimize(Named(["fc"], branches), inputs(0), progress=False)
    assert isinstance(own, ModuleInParts) == branches
    names = [*sorted({n for n in vars(own) if not hasattr(nn.Module(), n)} - {"names", "branches"}), "model", "fc"]
    for shift in range(3):
        m = Named(names[shift:] + names[:shift], branches)
        state = {k: v.clone() for k, v in m.state_dict().items()}
        fast = tessera.optimize(m, inputs(0), progress=False)
        torch.testing.assert_close(fast(inputs(1)), m(inputs(1)))
        assert fast.status()["runner"] == own.status()["runner"]
        assert fast.fc is m.fc and fast.model is m.model
        torch.testing.assert_close(dict(fast.state_dict()), state)


def test_many_modules_of_a_class():
    """Dynamo makes sizes vary at the second, and captures no ninth."""
    for n in range(10):
        m, x = Branching(), torch.randn(3 + n, 8)
        fast = tessera.optimize(m, x, progress=False)
        assert [g["runner"] for g in fast.status()["graphs"]] == ["kernels", "kernels"]
        torch.testing.assert_close(fast(x), m(x))


class Cache:
    def __init__(self):
        self.rows, self.length = [], torch.zeros(1)

    def add(self, x):
        self.rows.append(x)
        self.length += 1
        return torch.stack(self.rows).sum(0) + self.length


def test_objects_that_forward_changes_are_the_callers():
    class Attending(Base):
        def forward(self, x, cache):
            return cache.add(self.fc(x))

    m, cache = Attending(), Cache()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast = tessera.optimize(m, (inputs(0), cache), progress=False)
    assert not cache.rows and not cache.length
    eager = Cache()
    for seed in (1, 2):
        torch.testing.assert_close(fast(inputs(seed), cache), m(inputs(seed), eager))
    assert len(cache.rows) == 2 and cache.length == 2


def test_a_second_call_that_fails_of_the_first():
    class Once(Base):
        def __init__(self):
            super().__init__()
            self.rows = []

        def forward(self, x):
            if self.rows:
                raise IndexError("no room")
            self.rows.append(x.shape)
            return self.fc(x)

    m = Once()
    fast = tessera.optimize(m, inputs(0), progress=False)
    assert not m.rows and fast.status()["runner"] == "parts"
    torch.testing.assert_close(fast(inputs(1)), m.fc(inputs(1)))
    with pytest.raises(IndexError):
        fast(inputs(2))


def test_an_object_that_the_module_holds_is_given_too():
    """A cache with room for one more row, which the model remembers as it is called."""

    class Attending(Base):
        def forward(self, x, cache):
            assert not cache.rows
            self.cache = cache
            return cache.add(self.fc(x))

    m, cache = Attending(), Cache()
    m.cache = cache
    fast = tessera.optimize(m, (inputs(0), cache), progress=False)
    assert not cache.rows and not cache.length
    torch.testing.assert_close(fast(inputs(1), cache), m.fc(inputs(1)) + 1)
    assert len(cache.rows) == 1


def test_examples_are_what_a_graph_was_captured_with():
    """The call that captures it writes to its inputs, and those of a second one would be out of range."""

    class Row:
        def __init__(self):
            self.rows, self.at, self.calls = torch.zeros(2, 4, 8), torch.tensor([1]), 0

    class Filling(Base):
        def forward(self, x, row):
            row.calls += 1
            row.rows.index_copy_(0, row.at, self.fc(x)[None])
            row.at += 1
            return row.rows.sum(0)

    m, given, eager = Filling(), Row(), Row()
    fast = tessera.optimize(m, (inputs(0), given), progress=False)
    assert fast.status()["graphs"][0]["runner"] == "kernels"
    torch.testing.assert_close(fast(inputs(1), given), m(inputs(1), eager))
    assert given.at == eager.at and given.calls == 1


def test_strict_refuses_with_the_place():
    with pytest.raises(tessera.Error) as e:
        tessera.optimize(Branching(), inputs(0), progress=False, strict=True)
    assert e.value.diagnostic["code"] == "TS0203"
    assert any("test_parts.py:" in note for note in e.value.diagnostic["notes"])
    with pytest.raises(tessera.Error, match="`calls`"):
        tessera.optimize(Counting(), inputs(0), progress=False, strict=True)


def test_the_search_leaves_no_trace(capsys):
    class Telling(Counting):
        def forward(self, x):
            print("called")
            self.heard.append(1)
            return super().forward(x)

    m = Telling()
    weights, drawn = {k: v.clone() for k, v in m.state_dict().items()}, random.getstate()
    fast = tessera.optimize(m, inputs(0), progress=False)
    assert (m.calls, m.heard, capsys.readouterr().out) == (0, [], "") and random.getstate() == drawn
    assert all(torch.equal(v, m.state_dict()[k]) for k, v in weights.items())
    fast(inputs(0))
    assert (m.calls, m.heard, capsys.readouterr().out) == (1, [1], "called\n")


def test_copies_and_pickles_run_what_was_found(monkeypatch):
    m = Branching()
    fast = tessera.optimize(m, inputs(0), progress=False)
    monkeypatch.setattr(engine_module, "run_engine", lambda *given: pytest.fail("it was searched again"))
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        torch.testing.assert_close(other(inputs(1)), m(inputs(1)))
        assert other.status()["graphs"] and other.original is not m
        assert all(g["runner"] == "kernels" for g in other.status()["graphs"])
    with torch.inference_mode():
        torch.testing.assert_close(fast(inputs(1)), m(inputs(1)))
    assert all(g["runner"] == "kernels" for g in fast.status()["graphs"])


def test_gradients_and_modes_are_the_modules_own():
    m = Branching()
    fast = tessera.optimize(m, inputs(0), progress=False)
    with torch.enable_grad():
        fast(inputs(1)).sum().backward()
        got, m.fc.weight.grad = m.fc.weight.grad, None
        m(inputs(1)).sum().backward()
    torch.testing.assert_close(got, m.fc.weight.grad)
    assert fast.train().training and m.training and not fast.eval().training
    m.fc.weight.mul_(2)
    torch.testing.assert_close(fast(inputs(2)), m(inputs(2)))


def test_the_seconds_are_shared_by_what_graphs_take(monkeypatch):
    asked = []

    def run_engine(tracer, options, progress):
        asked.append(options["seconds"] - options["spent"])
        raise fail("TS0999", "test.none", "nothing found")

    monkeypatch.setattr(engine_module, "run_engine", run_engine)
    fast = tessera.optimize(Branching(), inputs(0), progress=False, seconds=20)
    assert len(asked) == 2 and 1 <= asked[0] < 20 and 1 <= asked[1] <= 20
    torch.testing.assert_close(fast(inputs(1)), fast.original(inputs(1)))
    assert all("nothing found" in g["reason"] for g in fast.status()["graphs"])


def test_what_nothing_can_run_is_an_error():
    class Failing(Base):
        def forward(self, x):
            self.calls += 1
            return self.fc(x[:, :4])

    m = Failing()
    with pytest.raises(tessera.Error) as e:
        tessera.optimize(m, inputs(0), progress=False)
    assert e.value.diagnostic["code"] == "TS0007" and m.calls == 0


def test_behind_torch_compile_what_was_not_captured_is_in_the_status():
    from tessera.backend import tessera as backend

    m = Looping().eval()
    fast = torch.compile(m, backend=backend)
    torch.testing.assert_close(fast(inputs(0)), m(inputs(0)))
    reasons = [g["reason"] for g in tessera.status(fast) if g["runner"] == "python"]
    line = Path(__file__).read_text().splitlines().index("        while x.abs().max() > 0.1:") + 1
    assert sum(f"test_parts.py:{line}: " in reason for reason in reasons) == 1, reasons


def test_tracing_has_a_bound(monkeypatch):
    from tessera.tracing import bounded

    class Unrolled(Base):
        def forward(self, x):
            for _ in range(3000):
                x = self.fc(x).tanh()
            return x

    said = []
    monkeypatch.setattr(bounded, "TRACE_SECONDS", 1.0)
    m = Unrolled()
    fast = tessera.optimize(m, inputs(0), progress=lambda event: said.append(event["message"]))
    status = fast.status()
    assert status["runner"] == "eager" and "given up after 1 s" in status["reason"]
    (ops,) = [int(n) for text in said for n in re.findall(r"has (\d+) ops", text)]
    assert ops >= 6000
    torch.testing.assert_close(fast(inputs(1)), m(inputs(1)))
