"""The canonical form means what the module means, in float64, and is as short as it should be."""

import math

import pytest
import torch
from graph_tools import ROOT, canonical, check, ops
from tessera.tracing.loading import _import, load_problem
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.nn import functional as F


def module(forward, **state):
    """A module with this forward(self, ...) and these submodules, parameters, buffers or plain values."""

    class Written(nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
                    self.register_buffer(name, value)
                else:
                    setattr(self, name, value)

    Written.forward = forward
    return Written()


torch.manual_seed(0)
X = torch.randn(4, 6, 16)
KERNEL = math.sqrt(2 / math.pi)

ACTIVATIONS = {
    "gelu_tanh": (lambda s, x: 0.5 * x * (1 + torch.tanh(KERNEL * (x + 0.044715 * x**3))), "gelu"),
    "gelu_tanh_factored": (lambda s, x: x * (torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)) + 1) / 2, "gelu"),
    "gelu_erf": (lambda s, x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))), "gelu"),
    "gelu_erf_other_order": (lambda s, x: (torch.erf(x * 0.7071067811865476) * x + x) * 0.5, "gelu"),
    "silu": (lambda s, x: x * torch.sigmoid(x), "silu"),
    "silu_exp": (lambda s, x: x / (1 + torch.exp(-x)), "silu"),
    "mish": (lambda s, x: x * torch.tanh(F.softplus(x)), "mish"),
    "hardswish": (lambda s, x: x * F.relu6(x + 3) / 6, "hardswish"),
    "sigmoid": (lambda s, x: 1 / (1 + (-x).exp()), "sigmoid"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_written_out(name):
    forward, op = ACTIVATIONS[name]
    _, graph = check(module(forward), X)
    assert ops(graph) == [op]


def rms(s, x):
    return s.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


NORMS = {
    "rms": (rms, "rms_norm"),
    "rms_sqrt": (lambda s, x: x / torch.sqrt((x * x).sum(-1, keepdim=True) / 16 + 1e-5) * s.weight, "rms_norm"),
    "rms_no_weight": (lambda s, x: x * (x.square().mean(-1).unsqueeze(-1) + 1e-5) ** -0.5, "rms_norm"),
    "layer": (
        lambda s, x: (
            (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) * s.weight
            + s.bias
        ),
        "layer_norm",
    ),
    "layer_moments": (
        lambda s, x: (
            s.bias
            + s.weight
            * (
                (x - x.mean(-1, keepdim=True))
                * torch.rsqrt((x - x.mean(-1, keepdim=True)).pow(2).mean(-1, keepdim=True) + 1e-6)
            )
        ),
        "layer_norm",
    ),
    "softmax": (lambda s, x: (e := torch.exp(x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True), "softmax"),
    "softmax_max": (lambda s, x: (e := torch.exp(x - x.max(-1, keepdim=True)[0])) / e.sum(-1, keepdim=True), "softmax"),
    "log_softmax": (lambda s, x: x - torch.logsumexp(x, -1, keepdim=True), "log_softmax"),
}


@pytest.mark.parametrize("name", NORMS)
def test_norm_written_out(name):
    forward, op = NORMS[name]
    _, graph = check(module(forward, weight=nn.Parameter(torch.rand(16) + 0.5), bias=nn.Parameter(torch.randn(16))), X)
    assert ops(graph) == [op]


def test_weight_plus_one_is_prepacked():
    _, graph = check(
        module(
            lambda s, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + s.weight),
            weight=nn.Parameter(torch.rand(16)),
        ),
        X,
    )
    assert ops(graph) == ["add", "rms_norm"] and graph["nodes"][0]["prepack"]


INNER = {
    "rms": lambda s, x: x / torch.sqrt(x.pow(2).mean(1, keepdim=True) + 1e-5),
    "rms_weight": lambda s, x: x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + 1e-6) * s.weight[:, None],
    "rms_gemma": lambda s, x: x * torch.rsqrt(x.square().mean(dim=1).unsqueeze(1) + 1e-6) * (1 + s.weight.view(6, 1)),
    "layer": lambda s, x: (x - x.mean(1, True)) / torch.sqrt(x.var(1, unbiased=False, keepdim=True) + 1e-5),
    "layer_first_dim": lambda s, x: (x - x.mean(0, True)) / torch.sqrt(x.var(0, unbiased=False, keepdim=True) + 1e-5),
    "softmax": lambda s, x: (e := torch.exp(x)) / e.sum(1, keepdim=True),
}


@pytest.mark.parametrize("name", INNER)
def test_norm_over_an_inner_dim(name):
    x = torch.randn(4, 6, 9)
    traced, graph = check(module(INNER[name], weight=nn.Parameter(torch.rand(6))), x)
    kind = "softmax" if name == "softmax" else "layer_norm" if "layer" in name else "rms_norm"
    called = [n["op"].split(".")[1] for n in graph["nodes"] if not n.get("prepack")]
    assert set(called) <= {kind, "permute", "reshape", "unsqueeze", "view"} and kind in called
    assert kind != "softmax" or called == ["softmax"]
    strides = {v["name"]: v["strides"] for g in (traced.graph, graph) for v in g["values"] if v["name"] in g["outputs"]}
    assert set(map(tuple, strides.values())) == {(54, 9, 1)}


NOT_THAT = {
    "bessel": lambda s, x: (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5),
    "eps_outside": lambda s, x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + 1e-5),
    "other_slope": lambda s, x: x * torch.sigmoid(1.702 * x),
    "other_constant": lambda s, x: 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044715 * x**3))),
    "sums_of_two_dims": lambda s, x: (e := torch.exp(x)) / (e.sum(1, keepdim=True) * e.sum(2, keepdim=True)).sqrt(),
    "statistic_along_another_dim": lambda s, x: x * torch.rsqrt(x[:, :, :6].pow(2).mean(2)[:, None] + 1e-6).mT,
    "unsafe_softplus": lambda s, x: torch.log1p(torch.exp(x)),
    "inner_is_result": lambda s, x: (y := torch.sigmoid(x), x * y),
    "inner_used_twice": lambda s, x: (y := torch.tanh(KERNEL * (x + 0.044715 * x**3))) * 2 + 0.5 * x * (1 + y),
}


@pytest.mark.parametrize("name", NOT_THAT)
def test_what_means_something_else_stays(name):
    _, graph = check(module(NOT_THAT[name]), X)
    assert not set(ops(graph)) & {"gelu", "silu", "layer_norm", "rms_norm", "softmax", "softplus"}


def heads(seed, count=3, batch=2, number=4, length=10, width=8):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, number, length, width, generator=generator) for _ in range(count)]


def causal_buffer(s, q, k, v):
    a = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(q.size(-1)))
    a = a.masked_fill(s.mask[:, :, : q.size(2), : q.size(2)] == 0, float("-inf"))
    return F.softmax(a, dim=-1) @ v


def causal_triu(s, q, k, v):
    mask = torch.triu(torch.full((10, 10), float("-inf")), diagonal=1)
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(2, 3)) / 2.5 + mask, -1), v)


def causal_where(s, q, k, v):
    keep = torch.tril(torch.ones(10, 10, dtype=torch.bool))
    a = (
        torch.where(keep, torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.3, float("-inf"))
        if s.einsum
        else torch.where(keep, (q * 0.3) @ k.mT, float("-inf"))
    )
    return a.softmax(-1) @ v


def causal_arange(s, q, k, v):
    i = torch.arange(10)
    a = (q / math.sqrt(8)) @ k.permute(0, 1, 3, 2)
    return a.masked_fill(i[None, :] > i[:, None], torch.finfo(a.dtype).min).softmax(-1) @ v


def three_dims(s, q, k, v):
    q, k, v = (t.reshape(8, 10, 8) for t in (q, k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.5, -1), v)


ATTENTIONS = {
    "buffer": (causal_buffer, {"mask": torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32)}, True),
    "triu": (causal_triu, {}, True),
    "where": (causal_where, {"einsum": False}, True),
    "arange": (causal_arange, {}, True),
    "additive_buffer": (
        lambda s, q, k, v: torch.softmax(q @ k.mT * 0.2 + s.mask[:10, :10], -1) @ v,
        {"mask": torch.full((16, 16), float("-inf")).triu(1)},
        True,
    ),
    "no_mask": (lambda s, q, k, v: F.dropout(torch.softmax(q @ k.transpose(-1, -2), -1), 0.0) @ v, {}, False),
    "softmax_written": (
        lambda s, q, k, v: (
            (e := torch.exp((a := q @ k.mT * 0.3) - a.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True) @ v
        ),
        {},
        False,
    ),
    "three_dims": (three_dims, {}, False),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_written_out(name):
    forward, state, causal = ATTENTIONS[name]
    _, graph = check(module(forward, **state), *heads(1))
    found = [n for n in graph["nodes"] if n["op"].startswith("aten.scaled_dot_product_attention")]
    assert len(found) == 1 and found[0]["arguments"]["is_causal"] is causal
    assert not set(ops(graph)) & {"softmax", "matmul", "bmm", "exp", "masked_fill", "triu", "tril", "where"}


def test_additive_mask_is_passed_on():
    bias = torch.randn(2, 4, 10, 10)
    _, graph = check(module(lambda s, q, k, v, m: torch.softmax(q @ k.mT * 0.25 + m, -1) @ v), *heads(2), bias)
    call = next(n for n in graph["nodes"] if "attention" in n["op"])
    assert call["arguments"]["attn_mask"] == {"value": "m"} and not call["arguments"]["is_causal"]


MASKS = {
    "additive": (lambda n: torch.full((n, n), float("-inf")).triu(1), True, False),
    "boolean": (lambda n: torch.ones(n, n, dtype=torch.bool).tril(), True, False),
    "four dims": (lambda n: torch.ones(n, n, dtype=torch.bool).tril()[None, None], True, False),
    "nothing": (lambda n: torch.zeros(n, n), False, False),
    "boolean additive": (lambda n: torch.ones(n, n).tril(), False, True),
    "window": (lambda n: torch.ones(n, n, dtype=torch.bool).tril().triu(-3), False, True),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_attention_calls_are_named(name):
    make, causal, mask = MASKS[name]
    _, graph = check(module(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=make(10))), *heads(7))
    call = next(n for n in graph["nodes"] if "attention" in n["op"])["arguments"]
    assert (call["is_causal"], call["attn_mask"] is not None) == (causal, mask)


def test_window_mask_is_no_causal_mask():
    i = torch.arange(10)
    window = ((i[None, :] <= i[:, None]) & (i[None, :] > i[:, None] - 4)).float()
    _, graph = check(
        module(lambda s, q, k, v: (q @ k.mT).masked_fill(s.window == 0, float("-inf")).softmax(-1) @ v, window=window),
        *heads(3),
    )
    for n in graph["nodes"]:
        assert not n["arguments"].get("is_causal")


@pytest.mark.parametrize("spelling", ["expand", "repeat_interleave", "sdpa"])
def test_repeated_heads_become_grouped(spelling):
    def repeat(x):
        if spelling == "expand":
            return x[:, :, None].expand(2, 2, 3, 10, 8).reshape(2, 6, 10, 8)
        return x.repeat_interleave(3, dim=1)

    def forward(s, q, k, v):
        k, v = repeat(k), repeat(v)
        if spelling == "sdpa":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.softmax(q @ k.transpose(2, 3) * 0.35, -1) @ v

    q = heads(4, 1, number=6)[0]
    k, v = heads(5, 2, number=2)
    _, graph = check(module(forward), q, k, v)
    assert ops(graph) == ["scaled_dot_product_attention"] and graph["nodes"][0]["arguments"]["enable_gqa"]


def test_attention_weights_that_are_a_result_stay():
    _, graph = check(module(lambda s, q, k, v: (w := torch.softmax(q @ k.mT, -1), w @ v)), *heads(6))
    assert "softmax" in ops(graph)


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


EINSUMS = {
    "bij,bkj->bik": [(2, 3, 4), (2, 5, 4)],
    "bijl,lk->bijk": [(2, 3, 4, 5), (5, 6)],
    "ij,jk": [(3, 4), (4, 5)],
    "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "bqhd,bkhd->bhqk": [(2, 4, 3, 5), (2, 6, 3, 5)],
    "abc,dbc->da": [(2, 3, 4), (5, 3, 4)],
    "bci,bcij->bj": [(2, 3, 4), (2, 3, 4, 5)],
}


@pytest.mark.parametrize("equation", EINSUMS)
def test_einsum_becomes_a_product(equation):
    inputs = [torch.randn(*shape) for shape in EINSUMS[equation]]
    _, graph = check(module(lambda s, a, b: torch.einsum(equation, a, b)), *inputs)
    assert "einsum" not in ops(graph) and set(ops(graph)) & {"matmul", "bmm", "linear"}


@pytest.mark.parametrize("equation", ["bij,bij->bij", "bii,bij->bj", "bij,bkl->bk", "bij->bj"])
def test_other_einsums_stay(equation):
    inputs = [torch.randn(2, 4, 4) for _ in equation.split("->")[0].split(",")]
    assert "einsum" in ops(check(module(lambda s, *x: torch.einsum(equation, *x)), *inputs)[1])


def test_constant_work_is_prepacked():
    def forward(s, x):
        i = torch.arange(16)
        near = (i[:, None] - i[None, :]).abs() < 4
        bias = torch.where(near, s.table[i], -1e9)
        return x @ (s.weight * 0.5) + bias[:6]

    state = {"weight": nn.Parameter(torch.randn(16, 16)), "table": nn.Parameter(torch.randn(16, 16))}
    _, graph = check(module(forward, **state), X)
    assert [n["op"].split(".")[1] for n in graph["nodes"] if not n.get("prepack")] in (
        ["t", "linear", "slice", "add"],
        ["linear", "slice", "add"],
    )


def test_what_changes_or_is_returned_is_not_prepacked():
    def forward(s, x):
        s.count.add_(1)
        return x * s.count, s.weight * 2, s.weight.t()

    _, graph = check(
        module(forward, weight=nn.Parameter(torch.randn(3, 16)), count=torch.ones(16)), X, canonical_too=True
    )
    assert not any(n.get("prepack") for n in graph["nodes"])


SPELLINGS = {
    "multiply": (lambda s, x: torch.multiply(x, 3), ["mul"]),
    "and": (lambda s, x: x.masked_fill((x > 0) & (x < 1), 0.0), ["gt", "lt", "bitwise_and", "masked_fill"]),
    "type_as": (lambda s, x: (x * 2).type_as(x).relu(), ["mul", "relu"]),
    "max values": (lambda s, x: x.max(1).values, ["amax"]),
    "min of two": (lambda s, x: torch.min(x, x * 2), ["mul", "minimum"]),
    "max places": (lambda s, x: x.max(1), ["max"]),
    "swapaxes": (lambda s, x: x.swapaxes(0, 1) + 1, ["transpose", "add"]),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings(name):
    forward, wanted = SPELLINGS[name]
    assert ops(check(module(forward), X)[1]) == wanted


def test_batch_norm_with_fixed_statistics_is_a_scale_and_a_shift():
    for norm, x in ((nn.BatchNorm2d(6), torch.randn(2, 6, 5, 4)), (nn.BatchNorm1d(6, affine=False), torch.randn(3, 6))):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
        _, graph = check(nn.Sequential(norm, nn.ReLU()).eval(), x)
        called = [n["op"].split(".")[1] for n in graph["nodes"] if not n.get("prepack")]
        assert [o for o in called if o != "reshape"] == ["mul", "add", "relu"]
        _, graph = check(nn.Sequential(norm, nn.ReLU()).train(), x)
        assert any("batch_norm" in o for o in ops(graph))


def test_numbers_move_behind_products():
    lin = nn.Linear(16, 8)
    _, graph = check(module(lambda s, x: s.lin(x * 0.25), lin=lin), X)
    assert ops(graph) == ["linear", "mul", "add"]
    _, graph = check(module(lambda s, x, y: (x / 3) @ (y * 2)), X, X.mT.contiguous())
    assert ops(graph) == ["matmul", "div", "mul"] or ops(graph) == ["matmul", "mul", "div"]
    _, graph = check(module(lambda s, x: ((y := x * 0.25), s.lin(y)), lin=lin), X)
    assert ops(graph) == ["mul", "linear"], "the scaled value is needed itself"
    _, graph = check(module(lambda s, x: s.lin(x * 1e20), lin=lin), X)
    assert ops(graph) == ["mul", "linear"], "far factors could overflow elsewhere"


def test_batches_of_many_strides_are_merged():
    def forward(s, q, k):
        return q.permute(2, 0, 1, 3, 4) @ k.permute(2, 0, 1, 4, 3)

    inputs = torch.randn(2, 7, 3, 6, 8).transpose(0, 1), torch.randn(7, 2, 3, 5, 8)
    _, graph = check(module(forward), *inputs)
    assert "bmm" in ops(graph) and "matmul" not in ops(graph)
    for left, right in (((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 4, 3, 5), (2, 3, 5, 6))):
        x = torch.randn(*left) if left[1] == 3 else torch.randn(*left).transpose(1, 2)
        assert "matmul" in ops(check(module(lambda s, q, k: q @ k), x, torch.randn(*right))[1])


def test_noops_go():
    _, graph = check(
        module(
            lambda s, x: (
                F.dropout(x.detach().view(4, 6, 16).float() * 1 + 0, 0.5, False).transpose(0, 1).transpose(0, 1).relu()
            )
        ),
        X,
    )
    assert ops(graph) == ["relu"]


def test_minigpt_example():
    loaded = load_problem(f"{ROOT}/examples/minigpt.py")
    small = type(loaded.module)(64, 4, 128)
    _, graph = check(small, torch.randn(2, 32, 64))
    views = {"split", "view", "transpose", "clone", "_unsafe_view"}
    assert [o for o in ops(graph) if o not in views] == [
        "layer_norm",
        "linear",
        "scaled_dot_product_attention",
        "linear",
        "add",
        "layer_norm",
        "linear",
        "gelu",
        "linear",
        "add",
    ]


@pytest.mark.parametrize("name", ["LlamaBlock", "LlamaBlockWritten"])
def test_llama_example(name):
    source = _import(f"{ROOT}/examples/llama_block.py")
    block = getattr(source, name)(source.Sizes(hidden=64, mlp=96, heads=8, kv_heads=2, sequence=40))
    _, graph = check(block, torch.randn(2, 24, 64))
    found = ops(graph)
    assert (
        found.count("rms_norm") == 2 and found.count("linear") == 5 and "softmax" not in found and "matmul" not in found
    )
    call = next(n for n in graph["nodes"] if "attention" in n["op"])
    assert call["arguments"]["is_causal"] and call["arguments"]["enable_gqa"]


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
    for module, inputs in (
        (nn.MultiheadAttention(32, 4, batch_first=True).eval(), (torch.randn(3, 8, 32),) * 3),
        (nn.MultiheadAttention(32, 4).eval(), (torch.randn(3, 8, 32), *(torch.randn(5, 8, 32),) * 2)),
    ):
        check(module, *inputs)
        check(module, *inputs, need_weights=False)
    check(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True).eval(), torch.randn(3, 8, 32), torch.randn(3, 5, 32))


@pytest.mark.parametrize("first, second", [((1, 2), (3, 2)), ((0, 1), (1, 2)), ((2, 3), (0, 1)), ((1, 2), (2, 1))])
def test_a_transpose_is_undone_by_the_same_one_alone(first, second):
    _, graph = check(module(lambda s, x: x.transpose(*first).transpose(*second) + 1), torch.randn(2, 3, 4, 5))
    undone = set(first) == set(second)
    assert sum("transpose" in n["op"] for n in graph["nodes"]) == (0 if undone else 2)
