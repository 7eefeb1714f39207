"""What a user of torch.compile does on the first day, through both doors; the engine is a stand-in that answers without kernels."""

from __future__ import annotations

import copy
import json
import pickle
import resource
import sys
import warnings
from pathlib import Path

import pytest
import tessera
import torch
from tessera.backend import tessera as backend
from tessera.common.reference import Executor
from tessera.judging.module_check import verify_module
from tessera.running import leftover
from tessera.running.export import export_module, load_folder
from tessera.tracing.held import hold, inputs_of
from tessera.tracing.loading import load_problem
from torch import nn

HERE = Path(__file__).resolve().parent
X = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.factor = nn.Linear(8, 8), nn.LayerNorm(8), 2.0

    def forward(self, x):
        return self.norm(self.fc(x)).softmax(-1) @ x * self.factor


def autocast(dtype=torch.bfloat16):
    return torch.autocast("cpu", dtype)


def test_autocast_around_optimize_and_the_calls():
    m = Net().eval()
    with torch.no_grad(), autocast():
        fast = tessera.optimize(m, X, progress=False)
        got, want = fast(X), m(X)
    assert got.dtype == want.dtype == torch.bfloat16 and torch.equal(got, want)
    assert fast.runner == "kernels" and fast.status()["served"] == 1 and fast.original is m
    with torch.no_grad():
        assert torch.equal(fast(X), m(X)) and fast(X).dtype == torch.float32
        with autocast(torch.float16):
            assert torch.equal(fast(X), m(X)) and fast(X).dtype == torch.float16
        m.factor = 3.0
        with autocast():
            assert torch.equal(fast(X), m(X))
    assert {f["kind"] for f in fast.status()["fallbacks"]} == {"autocast", "attribute"}


def test_a_copy_keeps_the_autocast_that_it_was_traced_under():
    m = Net().eval()
    with torch.no_grad(), autocast():
        fast = tessera.optimize(m, X, progress=False)
        for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            assert torch.equal(other(X), m(X)) and other.status()["served"] == 1


def test_autocast_around_what_torch_compile_made():
    m = Net().eval()
    fast = torch.compile(m, backend=backend)
    with torch.no_grad():
        for _ in range(2):
            with autocast():
                assert torch.equal(fast(X), m(X))
            assert torch.equal(fast(X), m(X))
    rows = tessera.status(fast)
    assert [g["runner"] for g in rows] == ["kernels", "kernels"] and all(g["status"]["served"] == 2 for g in rows)


def test_autocast_within_forward():
    class Inside(Net):
        def forward(self, x):
            with autocast():
                y = self.fc(x)
            return self.norm(y.float())

    m = Inside().eval()
    fast = tessera.optimize(m, X, progress=False)
    with torch.no_grad():
        torch.testing.assert_close(fast(X), m(X))
        with autocast():
            torch.testing.assert_close(fast(X), m(X))


@pytest.mark.parametrize("door", ["optimize", "backend"])
def test_a_training_loop_with_evaluations_between_its_steps(door):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    ref = copy.deepcopy(m)
    fast = tessera.optimize(m, X, progress=False) if door == "optimize" else torch.compile(m, backend=backend)
    ours, theirs = (torch.optim.SGD(x.parameters(), lr=0.1) for x in (m, ref))
    for _ in range(3):
        for module, optimizer in ((fast, ours), (ref, theirs)):
            optimizer.zero_grad()
            module(X).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            torch.testing.assert_close(fast(X), ref(X))
    if door == "optimize":
        assert fast.status()["served"] == 3 and fast.status()["calls"] == 6
    else:
        assert sorted(g["runner"] for g in tessera.status(fast)) == ["inductor", "kernels"]


def offsets_of(*sizes: int) -> torch.Tensor:
    return torch.tensor([0, *sizes]).cumsum(0)


def test_offsets_are_drawn_with_their_structure():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = nn.EmbeddingBag(50, 8)

        def forward(self, tokens, offsets):
            return self.bag(tokens, offsets)

    tokens, offsets = torch.randint(0, 50, (60,)), offsets_of(*[i % 4 + 1 for i in range(19)])[:-1].clone()
    held = hold(Bag().eval(), (tokens, offsets), {})
    for seed in range(4):
        (drawn, places), _ = inputs_of(held, seed)
        assert places[0] == 0 and bool((places[1:] >= places[:-1]).all()) and places[-1] <= len(drawn)
        held.module(drawn, places)
    fast = tessera.optimize(held.module, (tokens, offsets), progress=False)
    with torch.no_grad():
        torch.testing.assert_close(fast(tokens, offsets), held.module(tokens, offsets))


@pytest.mark.parametrize("name", ["cu_seqlens", "indptr"])
def test_bounds_of_rows_keep_their_first_and_last(name):
    class Segments(nn.Module):
        def forward(self, x, bounds):
            return torch.segment_reduce(x, "sum", offsets=bounds)

    bounds = offsets_of(*[i % 5 + 1 for i in range(20)])
    x = torch.randn(int(bounds[-1]), 4)
    held = hold(Segments(), (x, bounds), {})
    for seed in range(4):
        (_, drawn), _ = inputs_of(held, seed)
        assert drawn[0] == bounds[0] and drawn[-1] == bounds[-1] and bool((drawn[1:] >= drawn[:-1]).all())


def test_a_model_that_its_file_imports(tmp_path):
    (tmp_path / "its_layers.py").write_text("from torch import nn\nclass Wide(nn.Linear):\n    pass\n")
    model = tmp_path / "model.py"
    rest = (
        "import torch\ndef get_init_inputs():\n    return [4, 4]\ndef get_inputs():\n    return [torch.randn(2, 4)]\n"
    )
    for head, name in (("from its_layers import Wide as Model\n", None), ("from its_layers import Wide\n", "Wide")):
        model.write_text(head + rest)
        assert load_problem(str(model), name).name == "Wide"
    model.write_text("from torch.nn import Linear\n" + rest)
    with pytest.raises(tessera.Error) as e:
        load_problem(str(model))
    assert e.value.diagnostic["code"] == "TS0003"


def test_a_damaged_folder_is_told_from_a_whole_one(tmp_path):
    m = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).eval()
    held = hold(m, (X,), {})
    library = tmp_path / "cache" / "kernel.so"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF" * 2000)
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    plan = {"schema": "tessera.plan/1", "graph": held.graph, "leftover": [], "steps": steps}
    export_module(held.traced, (X,), {}, plan, str(tmp_path / "whole"))
    with torch.no_grad():
        torch.testing.assert_close(load_folder(tmp_path / "whole", m)(X), m(X))
    kernel = {"kind": "kernel", "candidate": {"library": str(library), "sha": "k"}, "pattern": {"id": "p01"}}
    out = tmp_path / "out"
    export_module(held.traced, (X,), {}, {**plan, "steps": [*steps, kernel]}, str(out))
    cut = out / "kernels" / "k.so"
    cut.write_bytes(cut.read_bytes()[:3000])
    for damage, code, word in (
        (lambda: None, "TS0310", "k.so"),
        (lambda: cut.unlink(), "TS0310", "missing"),
        (lambda: (out / "structure.pt").unlink(), "TS0214", "structure.pt"),
        (lambda: (out / "plan.json").write_text(json.dumps(plan)[:100]), "TS0214", "plan.json"),
    ):
        damage()
        with pytest.raises(tessera.Error, match=word) as e:
            load_folder(out, m)
        assert e.value.diagnostic["code"] == code


def test_a_batch_norm_in_training_mode_is_said_before_the_search():
    m = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    with pytest.warns(UserWarning, match="batch norms that take and update"):
        tessera.optimize(m, X, progress=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tessera.optimize(m.eval(), X, progress=False)
    assert not any("training mode" in str(w.message) for w in said)


def test_a_folder_on_a_full_disk_has_no_cut_file(tmp_path):
    """A limit for the size of files stands in for the disk."""
    m = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).eval()
    held = hold(m, (X,), {})
    plan = {"schema": "tessera.plan/1", "graph": held.graph, "leftover": [], "steps": []}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(tessera.Error, match="cannot be written") as e:
            export_module(held.traced, (X,), {}, plan, str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert e.value.diagnostic["code"] == "TS0033" and [p.name for p in tmp_path.iterdir()] == ["kernels"]


class Descent(nn.Module):
    """A step down its own gradient, within a call that records none."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8))

    def forward(self, x):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(((y @ self.weight) ** 2).sum(), y)
        return x - 0.1 * gradient


def test_gradients_within_forward():
    module = Descent().eval()
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(module, backend=backend, options={"seconds": 1, "leftover": "eager"})
        torch.testing.assert_close(compiled(X), module(X))
    # The graph that records them is not one for kernels, though its call begins without.
    assert any("records gradients" in row["reason"] for row in tessera.backend.status(compiled))


class Switching(Net):
    def forward(self, x):
        y = super().forward(x)
        torch.set_grad_enabled(True)
        return y


def test_a_mode_that_a_call_leaves_is_left():
    module = Switching().eval()
    with torch.no_grad():
        composed = tessera.optimize(module, X, progress=False)
        assert not torch.is_grad_enabled()
        composed(X)
        assert torch.is_grad_enabled()
    assert "it leaves torch.is_grad_enabled() at True" in composed.status()["reason"]


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.LazyLinear(8)

    def forward(self, x):
        return self.fc(x).relu()


def test_lazy_parameters_are_made():
    module, other = Lazy().eval(), Lazy().eval()
    with torch.no_grad():
        torch.manual_seed(0)
        composed = tessera.optimize(module, X, progress=False)
        torch.manual_seed(0)
        torch.testing.assert_close(composed(X), other(X))


class Bits(nn.Module):
    def forward(self, x):
        return (x.view(torch.int32) >> 23) + x.view(torch.int16)[:, ::2]


def test_bits_are_those_of_the_traced_type():
    held = hold(Bits(), (X,), {})
    graph, named = held.graph, held.traced.flatten((X,), {})
    (got,) = Executor(graph).run_all(named, torch.float64).values()
    assert torch.equal(got, Bits()(X))


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(4, 3, 8))

    def forward(self, x):
        self.ring.index_copy_(0, torch.tensor([1]), x[None])
        return self.ring.sum(0)


def test_what_eager_refuses_is_refused_behind_torch_compile():
    """A fake tensor may have fewer rows than the op takes."""
    module = Ring().eval()
    with torch.no_grad():
        compiled = torch.compile(module, backend=backend, options={"seconds": 1}, dynamic=False)
        compiled(torch.ones(3, 8))
        before = module.ring.clone()
        for _ in range(2):
            with pytest.raises(RuntimeError):
                compiled(torch.ones(1, 8))
        assert torch.equal(module.ring, before)


class Noted(Net):
    def get_extra_state(self):
        return {"note": 1}

    def set_extra_state(self, state):
        assert state == {"note": 1}


def test_extra_state_is_no_tensor():
    module = nn.Sequential(Noted()).eval()
    with torch.no_grad():
        held = hold(module, (X,), {})
        plan = {"graph": held.graph, "steps": [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]}
        reply = verify_module(held, plan | {"leftover": []}, 1)
    assert reply["ok"] and not reply["culprits"]
