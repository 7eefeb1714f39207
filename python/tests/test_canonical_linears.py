"""Linears in the canonical form: made of products, merged, rotated, behind norms, of transposed rows."""

import pytest
import torch
from graph_tools import X, canonical, check, module, ops
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def test_products_with_weights_become_linear():
    state = {
        "w": nn.Parameter(torch.randn(16, 24)),
        "u": nn.Parameter(torch.randn(8, 24)),
        "b": nn.Parameter(torch.randn(24)),
    }
    _, graph = check(module(lambda s, x: (x @ s.w + s.b) @ s.u.t(), **state), X)
    assert [o for o in ops(graph) if o != "t"] == ["linear", "linear"]


def test_siblings_merge_but_gated_pairs_do_not():
    lin = {n: nn.Linear(16, w, bias=False) for n, w in (("q", 16), ("k", 8), ("v", 8))}
    _, graph = check(module(lambda s, x: (s.q(x).mT, s.k(x).mT, s.v(x).mT), **lin), X)
    assert ops(graph).count("linear") == 1 and ops(graph)[0] == "cat"
    _, graph = check(module(lambda s, x: (s.q(x).mT, s.k(x).mT, F.gelu(s.v(x))), **lin), X)
    assert ops(graph).count("linear") == 2, "the activation stays in the epilogue of its own product"
    gate, up = nn.Linear(16, 24), nn.Linear(16, 24)
    _, graph = check(module(lambda s, x: F.silu(s.gate(x)) * s.up(x), gate=gate, up=up), X)
    assert ops(graph) == ["linear", "silu", "linear", "mul"]


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return cos * x + torch.cat((-second, first), dim=-1) * sin


def projections(**widths):
    tables = {n: nn.Buffer(torch.randn(6, 8)) for n in ("cos", "sin", "other")}
    return {n: nn.Linear(16, w, bias=False) for n, w in widths.items()} | tables


def heads_of(y, heads_first=True):
    y = y.view(*y.shape[:2], -1, 8)
    return y.transpose(1, 2) if heads_first else y


@pytest.mark.parametrize("heads_first", [True, False])
@pytest.mark.parametrize("first", ["q", "v"])
def test_siblings_are_rotated_together(first, heads_first):
    def forward(s, x):
        v = heads_of(s.v(x)) * 2 if first == "v" else None
        q, k = (heads_of(p(x), heads_first) for p in (s.q, s.k))
        tables = (s.cos, s.sin) if heads_first else (s.cos[:, None], s.sin[:, None])
        q, k = rotate(q, *tables), rotate(k, *tables)
        return q.sin(), k.sum(-1), v if v is not None else heads_of(s.v(x)) * 2

    _, graph = check(module(forward, **projections(q=16, k=8, v=24)), X)
    calculated = [o for o, n in zip(ops(graph), graph["nodes"], strict=True) if not n.get("prepack")]
    assert [calculated.count(o) for o in ("linear", "neg", "cat", "split_with_sizes")] == [1, 1, 2, 1]


def test_rotations_that_differ_or_are_read_between_stay_apart():
    def other_table(s, x):
        return rotate(heads_of(s.q(x)), s.cos, s.sin).sin(), rotate(heads_of(s.k(x)), s.cos, s.other).sin()

    def read_before(s, x):
        k = heads_of(s.k(x))
        return rotate(heads_of(s.q(x)), s.cos, s.sin).sin(), rotate(k, s.cos, s.sin).sin(), k.mean(-1)

    def depends(s, x):
        q, k, v = (heads_of(p(x)) for p in (s.q, s.k, s.v))
        table = s.cos * v[:1].amax((0, 1))
        return rotate(q, table, s.sin).sin(), rotate(k, table, s.sin).sin()

    def not_halves(s, x):
        q, k = heads_of(s.q(x)), heads_of(s.k(x))
        turn = lambda y: y * s.cos + torch.cat((-y[..., 6:], y[..., :6]), -1) * s.sin  # noqa: E731
        return turn(q).sin(), turn(k).sin()

    for forward in (other_table, read_before, depends, not_halves):
        _, graph = check(module(forward, **projections(q=16, k=8, v=8)), X)
        assert ops(graph).count("neg") == 2, forward.__name__


class _Projections(nn.Module):
    """RMSNorm, then linears of its result; `bare` reads the norm in another way too."""

    def __init__(self, count, weighted=True, bias=False, bare=False):
        super().__init__()
        self.norm = nn.RMSNorm(16, eps=1e-5, elementwise_affine=weighted)
        if weighted:
            nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        self.projections = nn.ModuleList(nn.Linear(16, 24, bias=bias) for _ in range(count))
        self.bare = bare

    def forward(self, x):
        y = self.norm(x)
        results = [torch.tanh(p(y) * 2) - 1 for p in self.projections]
        return (*results, torch.exp(y)) if self.bare else tuple(results)


NORMED = {
    "merged, with weight": (_Projections(3), True),
    "merged, with weight and bias": (_Projections(2, bias=True), True),
    "alone, without weight": (_Projections(1, weighted=False), True),
    "alone, with weight: the parameter would be held twice": (_Projections(1), False),
    "the normalized tensor is needed": (_Projections(2, bare=True), False),
}


@pytest.mark.parametrize("name", NORMED)
def test_factor_of_a_norm_moves_behind_products_on_gpus(name):
    case, moves = NORMED[name]
    _, graph = check(case, X, as_if_on="cuda:0")
    assert ("rsqrt" in ops(graph), "rms_norm" in ops(graph)) == (moves, not moves)
    _, graph = check(case, X)
    assert "rms_norm" in ops(graph)


@pytest.mark.parametrize("dtype, moves", [(torch.bfloat16, True), (torch.float16, False)])
def test_factor_of_a_norm_stays_where_the_product_could_overflow(dtype, moves):
    traced = trace_module(_Projections(2).to(dtype), (X.to(dtype),), {})
    assert ("rsqrt" in ops(canonical({**traced.graph, "device": "cuda:0"}))) == moves


def test_a_linear_of_transposed_rows_is_one_of_the_rows_as_they_lie():
    """nn.TransformerEncoderLayer puts the sequence first around its attention: neither product has rows of its own order."""
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu").eval()
    _, graph = check(layer, torch.randn(3, 8, 32))
    linears = [n for n in graph["nodes"] if n["op"] == "aten.linear.default"]
    shapes = {v["name"]: (v["shape"], v["strides"]) for v in graph["values"]}
    assert linears[0]["arguments"]["input"] == {"value": "src"}
    assert [shapes[n["outputs"][0]][0] for n in linears] == [[3, 8, 96], [3, 8, 32], [3, 8, 64], [3, 8, 32]]
    assert all(s[1] == [s[0][1] * s[0][2], s[0][2], 1] for s in (shapes[n["outputs"][0]] for n in linears))


def test_rows_whose_order_the_caller_sees_stay():
    class Turned(nn.Module):
        def __init__(self, shown):
            super().__init__()
            self.lin, self.shown = nn.Linear(16, 8), shown

        def forward(self, x):
            y = self.lin(x.transpose(0, 1))
            return y if self.shown else torch.relu(y) + 1

    for shown in (True, False):  # a result, or what a result is laid out like
        _, graph = check(Turned(shown), X)
        assert [n["op"] for n in graph["nodes"]][:2] == ["aten.transpose.int", "aten.linear.default"]
    for attention, inputs in (
        (nn.MultiheadAttention(32, 4, batch_first=True).eval(), (torch.randn(3, 8, 32),) * 3),
        (nn.MultiheadAttention(32, 4).eval(), (torch.randn(3, 8, 32), *(torch.randn(5, 8, 32),) * 2)),
    ):
        check(attention, *inputs)
        check(attention, *inputs, need_weights=False)
    check(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True).eval(), torch.randn(3, 8, 32), torch.randn(3, 5, 32))


@pytest.mark.parametrize("first, second", [((1, 2), (3, 2)), ((0, 1), (1, 2)), ((2, 3), (0, 1)), ((1, 2), (2, 1))])
def test_a_transpose_is_undone_by_the_same_one_alone(first, second):
    _, graph = check(module(lambda s, x: x.transpose(*first).transpose(*second) + 1), torch.randn(2, 3, 4, 5))
    undone = set(first) == set(second)
    assert sum("transpose" in n["op"] for n in graph["nodes"]) == (0 if undone else 2)
