"""What export takes otherwise than eager PyTorch does: layouts of results, ops taken apart, objects whose form changes."""

from __future__ import annotations

import graph_tools
import pytest
import torch
from tessera.tracing.held import hold, inputs_of
from tessera.tracing.literals import storages_alive
from torch.nn import functional as F

A = torch.randn(5, 1, 10).transpose(0, 2)
B = torch.randn(5, 10).T

OPS = {
    "floor_divide": lambda a, b: a // b,
    "div, floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "div, none": lambda a, b: torch.div((a * 9).int(), b, rounding_mode=None),
    "copysign": lambda a, b: torch.copysign((a * 9).int(), b),
    "logaddexp": torch.logaddexp,
    "logical_and": torch.logical_and,
    "logical_xor": torch.logical_xor,
    "zero": lambda a, b: a.zero_() + b * 0,
    "vector_norm": lambda a, b: torch.linalg.vector_norm(a, dim=1),
    "vector_norm of all": lambda a, b: torch.linalg.vector_norm(a[:1, :, :1]),
}


def composed(module: torch.nn.Module, *args):
    held = hold(module, args, {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    return held, held.compose({"graph": held.graph, "steps": steps}, "eager")


@pytest.mark.parametrize("op", OPS)
def test_what_follows_from_a_layout(op):
    """Whether reshape(-1) is a view is decided while export traces."""
    m = graph_tools.module(lambda self, a, b: (y := OPS[op](a.clone(), b), y.reshape(-1), y.mT.reshape(-1)))
    with torch.no_grad():
        wanted = m(A, B)
        held, ours = composed(m, A, B)
        values = {v["name"]: v for v in held.graph["values"]}
        for name, t in zip(held.graph["outputs"], wanted, strict=True):
            assert (values[name]["shape"], values[name]["strides"]) == (list(t.shape), list(t.stride()))
        for got, want in zip(ours(A, B), wanted, strict=True):
            assert got.stride() == want.stride()
            assert torch.equal(got, want)


def test_a_result_is_laid_out_as_the_modules():
    """PyTorch's fake tensors say otherwise."""
    m = graph_tools.module(lambda self, x: F.batch_norm(x, None, None, None, None, True))
    x = torch.randn(3, 2, 1).transpose(0, 2)
    with torch.no_grad():
        held, ours = composed(m, x)
        assert held.graph["meta"]["memory"]["strides"] == [list(m(x).stride())]
        assert ours(x).stride() == m(x).stride()


@pytest.mark.parametrize("op", [F.softshrink, F.hardshrink])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shrinks_round_once_and_keep_zeros_signs(op, dtype):
    m = graph_tools.module(lambda self, x: op(x, 0.3))
    x = torch.cat([torch.linspace(-2, 2, 4001), torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])]).to(dtype)
    with torch.no_grad():
        held, ours = composed(m, x)
        assert [n["op"] for n in held.graph["nodes"]] == [f"aten.{op.__name__}.default"]
        bits = torch.int32 if dtype == torch.float32 else torch.int16
        assert torch.equal(ours(x).view(bits), m(x).view(bits))


def test_an_object_whose_form_changes():
    def forward(self, x):
        row = self.p.detach()
        row.unsqueeze_(0)
        return row, x + row

    m, x = graph_tools.module(forward), torch.randn(2, 6)
    m.p = torch.nn.Parameter(torch.randn(2, 6))
    with torch.no_grad():
        got, _ = composed(m, x)[1](x)
        assert got.shape == (1, 2, 6)
        got.fill_(3.0)
        assert bool((m.p == 3).all())


def test_a_detached_view_requires_no_gradient():
    m, x = graph_tools.module(lambda self, x: (self.p.detach(), self.p.view(-1), x + 1)), torch.randn(2)
    m.p = torch.nn.Parameter(torch.randn(2, 6))
    with torch.no_grad():
        ours = composed(m, x)[1]
        assert [t.requires_grad for t in ours(x)] == [t.requires_grad for t in m(x)]


@pytest.mark.parametrize("of", ["the argument", "a view of it"])
def test_places_from_the_beginning_of_the_storage(of):
    def forward(self, x):
        v = x[::2] if of == "a view of it" else x
        return v.as_strided((4,), (2,), v.storage_offset()) * 2

    m, memory = graph_tools.module(forward), torch.arange(40.0)
    with torch.no_grad():
        ours = composed(m, memory[4:20])[1]
        for begin in (4, 8, 5):  # traced, elsewhere, an address that kernels cannot read
            for _ in range(2):  # Python's guards, then those of the extension
                x = memory[begin : begin + 16]
                assert torch.equal(ours(x), m(x))
        assert ours.status()["served"] == 2
        assert [f["kind"] for f in ours.status()["fallbacks"]] == ["layout"]


def test_no_literal_is_taken_for_a_tensor_that_was_there_before():
    """A storage that is made while export traces may get the address of one that is dropped meanwhile."""
    gone = [torch.empty(3) for _ in range(20)]
    alive = storages_alive()
    gone.clear()
    made = [torch.empty(3) for _ in range(20)]
    assert not any(t.untyped_storage()._cdata in alive for t in made)


def test_running_statistics_keep_their_type():
    """PyTorch's decomposition gives those of bfloat16 in float32."""
    m = graph_tools.module(
        lambda self, x: F.batch_norm(x, self.mean, self.var, None, None, True, 0.1) + self.mean.tanh_(),
        mean=torch.zeros(6, dtype=torch.bfloat16),
        var=torch.ones(6, dtype=torch.bfloat16),
    )
    with torch.no_grad():
        held, _ = composed(m, torch.randn(4, 6, dtype=torch.bfloat16))
    norm = next(n for n in held.graph["nodes"] if "batch_norm" in n["op"])
    types = {v["name"]: v["dtype"] for v in held.graph["values"]}
    assert [types[name] for name in norm["outputs"][-2:]] == ["bfloat16"] * 2


def test_copies_lie_where_the_graph_reads_their_storage():
    m = graph_tools.module(lambda self, x: torch.view_as_real(torch.view_as_complex(x.view(-1, 2))) + x.sum())
    x = torch.randn(5, 4)[1:]
    with torch.no_grad():
        held, ours = composed(m, x)
        for (given,), _ in (inputs_of(held, 1), held.copies((x,), {})):
            assert torch.equal(ours(given), m(given))
    assert ours.status()["fallbacks"] == []


def test_what_draws_and_is_not_read_shifts_what_is_drawn_next():
    m, x = graph_tools.module(lambda self, x: (torch.rand_like(x), torch.randn_like(x) + x)[1]), torch.randn(4)
    with torch.no_grad():
        ours = composed(m, x)[1]
        got, want = (torch.manual_seed(0) and f(x) for f in (ours, m))
    assert torch.equal(got, want)
