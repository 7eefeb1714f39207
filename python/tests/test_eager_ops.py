"""What export takes otherwise than eager PyTorch does: layouts of results, ops taken apart, objects whose form changes."""

from __future__ import annotations

import graph_tools
import pytest
import torch
from tessera.judging import trace_check
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


SCATTERS = {
    "select": lambda x: torch.select_scatter(x, x[0] * 2, 0, 1),
    "slice": lambda x: torch.slice_scatter(x, x[1:] * 2, 0, 1),
    "diagonal": lambda x: torch.diagonal_scatter(x, x[0] * 2),
}
GIVEN = {
    "contiguous": torch.randn(6, 6),
    "transposed": torch.randn(6, 6).T,
    "stepped": torch.randn(6, 12)[:, ::2],
    "expanded": torch.randn(1, 6).expand(6, 6),
    "overlapping": torch.randn(11).unfold(0, 6, 1),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("op", SCATTERS)
def test_what_is_scattered_into_is_copied_as_eager_copies_it(op, given):
    m, x = graph_tools.module(lambda self, x: SCATTERS[op](x).T * 2), GIVEN[given]
    with torch.no_grad():
        held, ours = composed(m, x)
        scattered = next(v for v in held.graph["values"] if v["name"].endswith("_scatter"))
        assert scattered["strides"] == list(SCATTERS[op](x).stride())
        assert torch.equal(ours(x), m(x)) and ours(x).stride() == m(x).stride()


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
        held, ours = composed(m, memory[4:20])
        trace_check.refuse_other_results(held)
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


NOTHING_TO_DO = {  # of [2, 4, 6, 6]; eager gives a copy of some, a view of others
    "channel_shuffle": lambda x: F.channel_shuffle(x, 1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 1),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 1),
    "roll": lambda x: x.roll(0, 1),
    "flip": lambda x: x.flip(()),
    "rot90": lambda x: x.rot90(4, (2, 3)),
    "repeat": lambda x: x.repeat(1, 1, 1, 1),
    "tile": lambda x: x.tile(1),
    "repeat_interleave": lambda x: x.repeat_interleave(1, 0),
    "pad": lambda x: F.pad(x, (0, 0, 0, 0)),
    "pad, circular": lambda x: F.pad(x, (0, 0, 0, 0), mode="circular"),
    "pad, replicate": lambda x: F.pad(x, (0, 0, 0, 0), mode="replicate"),
    "dropout": lambda x: F.dropout(x, 0.5, False),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, False),
    "to": lambda x: x.to(torch.float32),
    "to, copy": lambda x: x.to(torch.float32, copy=True),
    "contiguous": lambda x: x.contiguous(),
    "interpolate": lambda x: F.interpolate(x, size=(6, 6)),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 6),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 1),
    "max_pool2d": lambda x: F.max_pool2d(x, 1),
    "cat": lambda x: torch.cat([x]),
    "cat of nothing more": lambda x: torch.cat([x, x[:0]]),
    "sum over no dims' extent": lambda x: x[..., :1].sum(-1),
    "amax": lambda x: x[..., :1].amax(-1),
    "cumsum": lambda x: x[..., :1].cumsum(-1),
    "sort": lambda x: x[..., :1].sort(-1)[0],
    "diff": lambda x: x.diff(n=0),
    "tril": lambda x: x.tril(10),
    "index": lambda x: x[:],
    "narrow_copy": lambda x: torch.narrow_copy(x, 0, 0, 2),
    "unfold": lambda x: F.unfold(x, 1),
    "round of integers": lambda x: x.long().round(),
    "positive": lambda x: +x,
    "conj": lambda x: x.conj(),
    "conj_physical": lambda x: x.conj_physical(),
    "reshape": lambda x: x.reshape(2, 4, 6, 6),
    "ravel": lambda x: x.ravel(),
    "einsum": lambda x: torch.einsum("abcd->abcd", x),
    "matrix_power": lambda x: x.matrix_power(1),
    "broadcast_to": lambda x: torch.broadcast_to(x, (2, 4, 6, 6)),
    "chunk": lambda x: x.chunk(1)[0],
    "unsafe_chunk": lambda x: torch.unsafe_chunk(x, 1)[0],
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 0),
    "pow": lambda x: x**1,
    "clone": lambda x: x.clone(),
}


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_copies_and_views_where_there_is_nothing_to_do(layout):
    ops = list(NOTHING_TO_DO.values())
    m = graph_tools.module(lambda self, x: [(op(y), y.unsqueeze(0)) for op in ops for y in [x * 2]])
    x = torch.randn(2, 4, 6, 6).to(memory_format=layout)
    with torch.no_grad():
        wanted, got = m(x), composed(m, x)[1](x)
    for name, (want, base), (mine, mine_base) in zip(NOTHING_TO_DO, wanted, got, strict=True):
        storages = [t.untyped_storage().data_ptr() for t in (want, base, mine, mine_base)]
        assert (storages[0] == storages[1]) == (storages[2] == storages[3]), name
        assert torch.equal(want, mine) and want.stride() == mine.stride(), name
