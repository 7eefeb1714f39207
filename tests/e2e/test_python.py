"""The Python door with the real core: real kernels behind a module, guarded, and behind torch.compile."""

from __future__ import annotations

import copy
import io
import os
import pickle
import threading
import warnings

import pytest
import tessera
import torch
from core import BINARY
from torch import nn


class Block(nn.Module):
    """Norm, a chain of pointwise ops and a softmax: host has kernels of its own for all of them."""

    def __init__(self, width=256):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        y = self.norm(x)
        y = torch.nn.functional.silu(y * self.scale) * torch.tanh(y) + x
        return torch.softmax(self.linear(y) * 0.125, dim=-1)


# Kernels are placed wherever there are any: which way is the fastest on a busy host is not what is tested here.
OPTIONS = {"effort": "quick", "seconds": 60, "progress": False, "place_all": True}


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    assert BINARY.exists(), f"{BINARY} is not built; run ./dev build, or name it in TESSERA_BINARY"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESSERA_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("TESSERA_BINARY", str(BINARY))
        patch.setenv("OMP_WAIT_POLICY", "passive")
        yield


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(
    ("given", "near"),
    [("efort", "effort"), ("retunee", "retune"), ("precison", "precision"), ("use_registri", "use-registry")],
)
def test_an_unknown_option_is_refused_before_anything_is_traced(monkeypatch, given, near):
    from tessera import api

    monkeypatch.setattr(api, "hold", lambda *a, **k: pytest.fail("it was traced"))
    with pytest.raises(tessera.Error, match=f"did you mean `{near}`") as e:
        tessera.optimize(Block(), torch.randn(4, 256), **{given: "max"})
    assert e.value.diagnostic["code"] == "TS0041"


@torch.library.custom_op("tessera_tests::float_gelu", mutates_args=())
def float_gelu(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is not torch.float32:
        raise RuntimeError("float_gelu takes float32")
    return torch.nn.functional.gelu(x)


@float_gelu.register_fake
def _(x):
    return torch.empty_like(x)


def test_a_custom_op_of_one_type_stays_and_the_rest_is_optimized():
    class Custom(Block):
        def forward(self, x):
            return super().forward(torch.ops.tessera_tests.float_gelu(x))

    module, x = Custom().eval(), torch.randn(64, 256)
    with pytest.warns(UserWarning, match=r"TS0505(.|\n)*do not know fp64(.|\n)*float_gelu"):
        fast = tessera.optimize(module, x, **OPTIONS)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
    assert fast.status()["active"] and fast.status()["served"] == 1


@pytest.mark.parametrize(
    ("given", "value", "code"),
    [
        ("effort", "fast", "TS0043"),
        ("leftover", "induktor", "TS0043"),
        ("seconds", -3, "TS0046"),
        ("measure", ["egaer"], "TS0043"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_traced(monkeypatch, given, value, code):
    from tessera import api

    monkeypatch.setattr(api, "hold", lambda *a, **k: pytest.fail("it was traced"))
    with pytest.raises(tessera.Error) as e:
        tessera.optimize(Block(), torch.randn(4, 256), **{given: value})
    assert e.value.diagnostic["code"] == code


X = (512, 256)


@pytest.fixture(scope="module")
def optimized(home):
    torch.manual_seed(0)
    m = Block().eval()
    return tessera.optimize(m, torch.randn(X), **OPTIONS)


@pytest.fixture
def pair(optimized):
    """A copy of the optimized module, and a copy of the original."""
    return copy.deepcopy(optimized), copy.deepcopy(optimized.original)


def agree(a, b, *inputs) -> None:
    with torch.no_grad():
        torch.testing.assert_close(a(*inputs), b(*inputs), rtol=2e-5, atol=2e-6)


def test_kernels_run(pair):
    c, ref = pair
    assert c.status()["active"] and c.report["verification"]["ok"]
    agree(c, ref, torch.randn(X))
    assert c.status()["served"] == 1 and not c.status()["fallbacks"]


def test_guards(pair):
    c, ref = pair
    agree(c, ref, torch.randn(8, 256))
    agree(c, ref, torch.randn(2, 4, 256))
    x = torch.randn(X)
    torch.testing.assert_close(c(x), ref(x), rtol=2e-5, atol=2e-6)  # gradients are recorded
    c(x).sum().backward()
    assert c.linear.weight.grad is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        agree(c, ref, x)
    c.train(), ref.train()
    agree(c, ref, x)
    c.eval(), ref.eval()
    seen = {e["kind"] for e in c.status()["fallbacks"]}
    assert seen == {"shape", "grad", "autocast"} or seen == {"shape", "grad", "autocast", "training"}
    c.zero_grad()
    served = c.status()["served"]
    agree(c, ref, x)
    assert c.status()["served"] == served + 1


def test_changed_parameters(pair):
    c, ref = pair
    x = torch.randn(X)
    agree(c, ref, x)
    state = {k: torch.randn_like(v) for k, v in ref.state_dict().items()}
    c.load_state_dict(state), ref.load_state_dict(state)
    agree(c, ref, x)
    for m in (c, ref):
        step = torch.optim.SGD(m.parameters(), lr=0.1)
        torch.manual_seed(3)
        m(torch.randn(X)).square().sum().backward()
        step.step()
        step.zero_grad()
    agree(c, ref, x)
    c.to(torch.bfloat16), ref.to(torch.bfloat16)
    with torch.no_grad():
        assert torch.equal(c(x.bfloat16()), ref(x.bfloat16()))


def test_copies(pair, tmp_path):
    c, ref = pair
    x = torch.randn(X)
    buffer = io.BytesIO()
    torch.save(c, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c)), torch.load(buffer, weights_only=False)):
        agree(other, ref, x)
        assert other.status()["served"] == 1 and list(other.state_dict()) == list(ref.state_dict())


def test_compile_over_an_optimized_module(pair):
    c, ref = pair
    torch.compiler.reset()
    f = torch.compile(c, fullgraph=True, backend="aot_eager")
    agree(f, ref, torch.randn(X))
    assert torch._dynamo.explain(c)(torch.randn(X)).graph_break_count == 0


def test_threads(pair):
    c, ref = pair
    inputs = [torch.randn(X) for _ in range(4)]
    with torch.no_grad():
        expected = [ref(x) for x in inputs]
    made: dict[int, torch.Tensor] = {}

    def work(i):
        with torch.no_grad():
            for _ in range(5):
                made[i] = c(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, y in enumerate(expected):
        torch.testing.assert_close(made[i], y, rtol=2e-5, atol=2e-6)


def test_backend(home):
    """torch.compile(model, backend="tessera") against the real core, by the name that the entry point has."""
    from tessera.backend import tessera as backend

    torch.compiler.reset()
    made = []

    def spy(gm, inputs, **more):
        made.append(backend(gm, inputs, **more))
        return made[-1]

    torch.manual_seed(1)
    m = Block().eval()
    ref = copy.deepcopy(m)
    f = torch.compile(m, backend=spy, options=OPTIONS)
    agree(f, ref, torch.randn(X))
    with torch.no_grad():
        for each in (m, ref):
            each.linear.weight.mul_(0.5)
    agree(f, ref, torch.randn(X))
    status = made[0].composed.status()
    assert status["active"] and status["served"] == 2, status


def test_second_call_compiles_nothing(optimized):
    kernels = os.path.join(os.environ["TESSERA_HOME"], "kernels")
    before = {f: os.path.getmtime(os.path.join(r, f)) for r, _, fs in os.walk(kernels) for f in fs if f == "kernel.so"}
    said = []
    again = tessera.optimize(
        copy.deepcopy(optimized.original), torch.randn(X), **{**OPTIONS, "progress": lambda e: said.append(e["stage"])}
    )
    assert "build" not in said and "tune" not in said and "reuse" in said, said
    assert again.status()["active"] == optimized.status()["active"]
    after = {f: os.path.getmtime(os.path.join(r, f)) for r, _, fs in os.walk(kernels) for f in fs if f == "kernel.so"}
    assert before == after
