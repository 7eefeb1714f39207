"""The canonical form means what the module means, in float64, and is as short as it should be."""

import math

import pytest
import torch
from graph_tools import ROOT, X, canonical, check, module, ops
from tessera.common.reference import Executor
from tessera.tracing.loading import _import, load_problem
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
KERNEL = math.sqrt(2 / math.pi)

ACTIVATIONS = {
    "gelu_tanh": (lambda s, x: 0.5 * x * (1 + torch.tanh(KERNEL * (x + 0.044715 * x**3))), "gelu"),
    "gelu_tanh_factored": (lambda s, x: (torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)) + 1) * (x / 2), "gelu"),
    "gelu_erf": (lambda s, x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))), "gelu"),
    "gelu_erf_other_order": (lambda s, x: (torch.erf(x * 0.7071067811865476) + 1) * (x * 0.5), "gelu"),
    "silu": (lambda s, x: x * torch.sigmoid(x), "silu"),
    "silu_exp": (lambda s, x: x / (1 + torch.exp(-x)), "silu"),
    "mish": (lambda s, x: x * torch.tanh(F.softplus(x)), "mish"),
    "hardswish": (lambda s, x: x * F.relu6(x + 3) / 6, "hardswish"),
    "sigmoid": (lambda s, x: 1 / (1 + (-x).exp()), "sigmoid"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_written_out(name):
    forward, op = ACTIVATIONS[name]
    # On a host PyTorch's GELU by erf is another function: of infinity it is NaN.
    _, graph = check(module(forward), X, as_if_on="cuda:0" if "erf" in name else "")
    assert ops(graph) == [op]
    assert "erf" not in name or "gelu" not in ops(check(module(forward), X)[1])


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
    "log_softmax": (
        lambda s, x: (y := x - x.amax(-1, keepdim=True)) - y.exp().sum(-1, keepdim=True).log(),
        "log_softmax",
    ),
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
    "softmax": lambda s, x: (e := torch.exp(x - x.amax(1, True))) / e.sum(1, keepdim=True),
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
    "unsafe_softmax": lambda s, x: (e := torch.exp(x)) / e.sum(1, keepdim=True),
    "log_of_sum": lambda s, x: x - torch.logsumexp(x, -1, keepdim=True),
    "doubled_before_halved": lambda s, x: x * (torch.tanh(KERNEL * x * (1 + 0.044715 * x * x)) + 1) / 2,
    "unsafe_softplus": lambda s, x: torch.log1p(torch.exp(x)),
    "inner_is_result": lambda s, x: (y := torch.sigmoid(x), x * y),
    "inner_used_twice": lambda s, x: (y := torch.tanh(KERNEL * (x + 0.044715 * x**3))) * 2 + 0.5 * x * (1 + y),
}


@pytest.mark.parametrize("name", NOT_THAT)
def test_what_means_something_else_stays(name):
    _, graph = check(module(NOT_THAT[name]), X)
    assert not set(ops(graph)) & {"gelu", "silu", "layer_norm", "rms_norm", "softmax", "softplus"}


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


@pytest.mark.parametrize("factor", [2.0**-12, 3.0])
def test_numbers_stay_in_front_of_products(factor):
    """Behind them, sums overflow that did not, and the other way round."""
    forward = module(lambda s, x, w: (x * factor) @ w)
    for size in (1.0, 1e36, 3e37):
        x, w = X * size, torch.randn(16, 8)
        traced, graph = check(forward, x, w)
        assert ops(graph) == ["mul", "matmul"]
        (got,) = Executor(graph).run_all(traced.flatten((x, w), {})).values()
        # Infinities of both signs meet in a sum on some processors: NaN, in the same places.
        torch.testing.assert_close(got, forward(x, w), rtol=0, atol=0, equal_nan=True)


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
                F.dropout(x.detach().view(4, 6, 16).float() * 1 - 0, 0.5, False).transpose(0, 1).transpose(0, 1).relu()
            )
        ),
        X,
    )
    assert ops(graph) == ["relu"]


@pytest.mark.parametrize("number", [0.0, -0.0, 0])
@pytest.mark.parametrize("op", [torch.add, torch.sub])
@pytest.mark.parametrize("x", [torch.tensor([-0.0, 0.0, 1.0]), torch.tensor([0, 1, 2]), torch.tensor([True, False])])
def test_zeros_of_both_signs(x, op, number):
    if op is torch.sub and x.dtype == torch.bool:
        return
    forward = module(lambda s, x: op(x, number) * 2)
    traced = trace_module(forward, (x,), {})
    graph = canonical(traced.graph)
    (got,) = Executor(graph).run_all(traced.flatten((x,), {})).values()
    want = forward(x)
    assert got.dtype == want.dtype and torch.equal(got, want) and torch.equal(got.signbit(), want.signbit())
    if x.is_floating_point():
        neutral = (op is torch.add) == (math.copysign(1, number) < 0)
        assert (ops(graph) == ["mul"]) is neutral


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
