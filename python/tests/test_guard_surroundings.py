"""Each of torch's settings that a trace depends on, changed; and arguments of other kinds than a plain tensor."""

from __future__ import annotations

import contextlib

import pytest
import torch
from guarding import changed, composed, kinds, served
from tessera.judging.peers import equal_precision
from tessera.running.compose import ComposedModule
from tessera.running.surroundings import SETTINGS, settings_for, taken
from torch import nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class Made(nn.Module):
    """Makes tensors of the default type on the default device, and attends."""

    def forward(self, x):
        y = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        return y * torch.ones(8) + torch.arange(8) / 3, torch.mm(x[0, 0], x[0, 0].t())


class _Function(TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class _Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def deterministic(mode: bool, warns: bool):
    torch.use_deterministic_algorithms(mode, warn_only=warns)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default_device():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def attention_without(name: str):
    set_to, is_on = getattr(torch.backends.cuda, f"enable_{name}"), getattr(torch.backends.cuda, f"{name}_enabled")
    before = is_on()
    set_to(not before)
    try:
        yield
    finally:
        set_to(before)


# By setting, what changes it.
CHANGES = {
    "torch.func's level (vmap, grad, jvp)": None,  # test_func_transforms.py
    "the level of forward-mode AD": forward_ad.dual_level,
    "the number of __torch_dispatch__ modes": _Dispatch,
    "the number of __torch_function__ modes": _Function,
    "the depth of parametrize.cached()": nn.utils.parametrize.cached,
    "the default dtype": default_dtype,
    "the default device": default_device,
    "deterministic mode": lambda: deterministic(True, False),
    "deterministic mode that only warns": lambda: deterministic(False, True),
    "filling of new memory": lambda: changed(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "autocast's type on the CPU": lambda: torch.autocast("cpu", torch.bfloat16),
    "torch.backends.mkldnn": lambda: torch.backends.mkldnn.flags(enabled=False),
    "flash attention": lambda: attention_without("flash_sdp"),
    "attention by blocks": lambda: attention_without("mem_efficient_sdp"),
    "attention by separate ops": lambda: attention_without("math_sdp"),
    "attention by cuDNN": lambda: attention_without("cudnn_sdp"),
    "autocast's type on CUDA": lambda: torch.autocast("cuda", torch.bfloat16),
    "torch.backends.cudnn.enabled": lambda: torch.backends.cudnn.flags(enabled=False),
    "torch.backends.cudnn.deterministic": lambda: changed(torch.backends.cudnn, "deterministic", True),
}


@pytest.fixture(scope="module")
def made() -> ComposedModule:
    return composed(Made(), torch.randn(1, 1, 4, 8))


@pytest.mark.parametrize("what", [s.what for s in settings_for(torch.device("cpu"))])
def test_each_setting(made, what):
    setting = next(s for s in SETTINGS if s.what == what)
    if CHANGES[what] is None:
        return
    x = torch.randn(1, 1, 4, 8)
    assert served(made, x)
    if what == "the default device":  # which the original then fails on
        with torch.no_grad(), CHANGES[what]():
            assert made._guard((x,), {}).kind == setting.kind
    else:
        with CHANGES[what]():
            assert not served(made, x)
    assert made._events.texts.get(setting.kind, what).startswith(what) and served(made, x)


def test_verification_changes_none():
    """It sets torch's precision flags; the composed module that it judges has to be what runs."""
    now = taken(torch.device("cuda"))
    with equal_precision("fp32"):
        assert taken(torch.device("cuda")) == now
    with equal_precision("tf32"):
        assert taken(torch.device("cuda")) == now


def test_every_setting_has_a_change():
    assert set(CHANGES) == {s.what for s in SETTINGS}


@pytest.mark.parametrize("what", [s.what for s in SETTINGS if s.cuda and s.kind == "cudnn"])
def test_settings_of_cuda_are_read(what):
    setting = next(s for s in SETTINGS if s.what == what)
    before = setting.now()
    with CHANGES[what]():
        assert setting.now() != before
    assert setting.now() == before


def test_the_trace_says_what_is_expected():
    """A plan that was made under other settings than those it is loaded under."""
    with default_dtype():
        then = taken(torch.device("cpu"))
        m = composed(Made(), torch.randn(1, 1, 4, 8))
    m.plan["graph"]["meta"]["surroundings"] = then
    again = ComposedModule(m.original, m.plan, example=m._example, outputs=m._outputs, constants=m._constants)
    x = torch.randn(1, 1, 4, 8, dtype=torch.float64)
    assert not served(again, x) and kinds(again) == {"default dtype": 2}
    with default_dtype():
        assert served(again, x)


def test_grad_mode_matters_to_who_asks():
    class Asking(nn.Module):
        def forward(self, x):
            return x * (2 if torch.is_grad_enabled() else 3)

    asks, other = composed(Asking(), torch.ones(3)), composed(nn.ReLU(), torch.ones(3))
    assert served(asks, torch.ones(3))
    for _ in range(2):
        assert torch.equal(asks(torch.ones(3)), torch.full((3,), 2.0))
        other(torch.ones(3))
    assert kinds(asks) == {"code": 2} and other.status()["served"] == 2


# --- arguments of other kinds ----------------------------------------------------------------------------------------


class Subclass(torch.Tensor):
    pass


def wide(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.complex64)


KINDS = {
    "sparse": lambda: torch.randn(4, 4).to_sparse(),
    "by rows": lambda: torch.randn(4, 4).to_sparse_csr(),
    "mkldnn": lambda: torch.randn(4, 4).to_mkldnn(),
    "negated lazily": lambda: wide(4, 4).conj().imag,
    "zeros without memory": lambda: torch._efficientzerotensor(4, 4),
    "a subclass": lambda: torch.randn(4, 4).as_subclass(Subclass),
    "transposed": lambda: torch.randn(4, 4).t(),
    "every second column": lambda: torch.randn(4, 8)[:, ::2],
    "expanded": lambda: torch.randn(1, 4).expand(4, 4),
    "another type": lambda: torch.randn(4, 4).double(),
    "another size": lambda: torch.randn(3, 4),
    "no memory": lambda: torch.randn(4, 4, device="meta"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_of_other_kinds(kind):
    class Twice(nn.Module):
        def forward(self, x):
            return torch.relu(x) * 2

    m = Twice()
    made, x = composed(m, torch.randn(4, 4)), KINDS[kind]()
    assert served(made, torch.randn(4, 4))
    with torch.no_grad():
        for _ in range(2):
            wanted, found = m(x), made(x)
            assert (type(found), found.layout, found.dtype) == (type(wanted), wanted.layout, wanted.dtype)
            if kind not in ("no memory", "mkldnn"):
                assert torch.equal(
                    wanted.to_dense().as_subclass(torch.Tensor), found.to_dense().as_subclass(torch.Tensor)
                )
            if wanted.layout == torch.strided:
                assert wanted.stride() == found.stride()
    assert sum(kinds(made).values()) == 2 and served(made, torch.randn(4, 4))


def test_a_nested_and_a_quantized_argument():
    class Same(nn.Module):
        def forward(self, x):
            return x.clone()

    made = composed(Same(), torch.randn(4, 4))
    nested = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)])
    quantized = torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 0, torch.qint8)
    with torch.no_grad():
        assert made(nested).is_nested and torch.equal(made(quantized).int_repr(), quantized.int_repr())
    assert kinds(made) == {"layout": 2} and served(made, torch.randn(4, 4))
