"""Complex parameters, buffers and attributes: a graph reads their parts, where and as the module has them at the call."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from tessera.common.errors import Error
from tessera.running.compose import ComposedModule
from tessera.running.export import export_module
from tessera.tracing.tracer import trace_module
from torch import nn


class Filter(nn.Module):
    """Frequencies times complex numbers, which it holds as a parameter, a buffer, or a plain attribute."""

    def __init__(self, kind: str):
        super().__init__()
        z = torch.randn(3, 5, dtype=torch.cfloat)
        if kind == "parameter":
            self.z = nn.Parameter(z)
        elif kind == "buffer":
            self.register_buffer("z", z)
        else:
            self.z = z

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * (self.z * 2), n=8)


def other(m) -> torch.Tensor:
    z = torch.randn_like(m.z)
    return nn.Parameter(z) if isinstance(m.z, nn.Parameter) else z


def loaded(m):
    m.load_state_dict({k: v * 3 for k, v in m.state_dict().items()})


def assigned(m):
    m.load_state_dict({k: v * 3 for k, v in m.state_dict().items()}, assign=True)


def moved(m):
    m.to(torch.float64)
    m.to(torch.float32)
    m.z.data = m.z.data.to(torch.cfloat)


CHANGES = {
    "in place": lambda m: m.z.data.mul_(3),
    "counted": lambda m: m.z.detach().add_(1j),
    "data": lambda m: setattr(m.z, "data", torch.randn_like(m.z.data)),
    "another tensor": lambda m: setattr(m, "z", other(m)),
    "loaded": loaded,
    "assigned": assigned,
    "moved": moved,
}

KINDS = ["parameter", "buffer", "attribute"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def traced_and_plan(m: nn.Module, kept: bool):
    traced = trace_module(m, (torch.randn(2, 3, 8),))
    doubled = next(n for n in traced.graph["nodes"] if n["op"] == "aten.mul.Tensor" and n["arguments"]["other"] == 2)
    steps = [{"kind": "prepack", "nodes": [doubled["name"]], "outputs": doubled["outputs"]}] if kept else []
    return traced, {"schema": "tessera.plan/1", "graph": traced.graph, "steps": steps, "leftover": []}


def composed(m: nn.Module, kept: bool = False) -> ComposedModule:
    """`kept`: twice the numbers is made once, and anew where the version counter says so."""
    traced, plan = traced_and_plan(m, kept)
    return ComposedModule(m, plan, constants=traced.constants, frozen=kept)


def same(c: nn.Module, m: nn.Module) -> None:
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        torch.testing.assert_close(c(x), m(x))


# `.data` raises no version, and who has values kept promises not to write so.
@pytest.mark.parametrize("kept, change", [(k, c) for k in (False, True) for c in CHANGES if not k or c != "in place"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_module_has_at_the_call_is_read(kind, change, kept):
    m = Filter(kind).eval()
    c = composed(m, kept)
    same(c, m)
    CHANGES[change](m)
    same(c, m)
    assert c.status()["served"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_another_type_goes_to_the_original(kind):
    m = Filter(kind).eval()
    c = composed(m)
    m.z = nn.Parameter(m.z.to(torch.complex128)) if kind == "parameter" else m.z.to(torch.complex128)
    same(c, m)
    m.z = nn.Parameter(m.z.real.float()) if kind == "parameter" else m.z.real.float()
    same(c, m)
    if kind != "parameter":
        m.z = torch.randn(3, 5, dtype=torch.cfloat).conj()
        same(c, m)
    assert c.status()["served"] == 0


def test_gradients_of_a_complex_parameter_go_to_the_original():
    m = Filter("parameter").eval()
    c = composed(m)
    c(torch.randn(2, 3, 8)).sum().backward()
    assert m.z.grad is not None and c.status()["served"] == 0


def test_torch_compile_around_it_sees_a_change():
    m = Filter("parameter").eval()
    fast = torch.compile(composed(m), backend="eager")
    same(fast, m)
    m.z.data.mul_(3)
    same(fast, m)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_plan_reads_another_module(kind, tmp_path, monkeypatch):
    m = Filter(kind).eval()
    traced, plan = traced_and_plan(m, kept=False)
    export_module(traced, (torch.randn(2, 3, 8),), {}, plan, str(tmp_path))
    scope: dict = {"__file__": str(tmp_path / "composed.py")}
    exec((tmp_path / "composed.py").read_text(), scope)  # noqa: S102
    another = Filter(kind).eval()
    same(scope["load"](another), another)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_reads_its_own(kind):
    m = Filter(kind).eval()
    c = composed(m)
    twin = copy.deepcopy(c)
    m.z.data.mul_(3)
    same(c, m)
    same(twin, twin.original)
    assert not torch.equal(twin.original.z, m.z)


def test_complex_state_that_forward_changes_is_refused():
    class Counts(Filter):
        def forward(self, x):
            self.z.add_(1)
            return x * self.z.real.sum()

    with pytest.raises(Error, match=r"TS0205.*complex64"):
        trace_module(Counts("buffer").eval(), (torch.randn(2, 3, 8),))
