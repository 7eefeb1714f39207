"""Norms, softmax and activations as people write them, generated: for every form, the canonical form computes what eager
computes, on numbers of all magnitudes, infinities, NaN, zeros, constant rows and rows that are masked as a whole."""

import itertools
import math
import os
import random

import pytest
import torch
from graph_tools import canonical, module, ops
from tessera.common.reference import Executor
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.nn import functional as F

COLUMNS = 24
INF, NAN = math.inf, math.nan
TYPES = (torch.float32, torch.bfloat16, torch.float16)
FORMS = 200 if os.environ.get("TESSERA_TEST_ALL") else 20  # of a family, along one dim, in one type


def special_rows(dtype: torch.dtype) -> torch.Tensor:
    info = torch.finfo(dtype)
    generator = torch.Generator().manual_seed(0)

    def normal():
        return torch.randn(COLUMNS, generator=generator, dtype=torch.float64)

    low, high = math.log10(info.smallest_normal) - 3, math.log10(info.max)
    rows = [normal() * 10 ** (low + (high - low) * k / 30) for k in range(31)]
    for about in (0.7, 0.9, 1.2, 3):  # where the sum of squares overflows
        rows.append(normal().sign() * about * math.sqrt(info.max / COLUMNS))
    for value in (0.0, -0.0, 1, 2.5, -3, 200, 1e-6, info.tiny, info.max, -info.max, INF, -INF, NAN):
        rows.append(torch.full((COLUMNS,), value, dtype=torch.float64))
    for value in (INF, -INF, NAN, 0, 60, 200, -200, info.max, -info.max):
        rows.append(normal())
        rows[-1][5] = value
    rows.append(torch.full((COLUMNS,), -INF, dtype=torch.float64))
    rows[-1][3] = 1
    rows.append(normal())
    rows[-1][2], rows[-1][7] = INF, -INF
    return torch.stack(rows).clamp(-INF, INF).to(dtype)


# --- forms: text of Python of x, w, b and dim, made of choices -------------------------------------------------------------


def choices(*lists):
    return list(itertools.product(*lists))


def softmax_forms():
    for most, total, quotient, end in choices(
        ("x - x.amax(dim, keepdim=True)", "x - x.max(dim, keepdim=True)[0]", "x", "x - x.logsumexp(dim, keepdim=True)"),
        ("e.sum(dim, keepdim=True)", "e.sum(dim).unsqueeze(dim)", "(e.sum(dim, keepdim=True) + 1e-12)"),
        ("e / t", "e * t.reciprocal()", "e / t + 1e-12", "e / t.clamp(min=1e-7)"),
        ("y", "y.log()", "(y + 1e-12).log()"),
    ):
        yield f"e = ({most}).exp(); t = {total}; y = {quotient}; y = {end}"
    for most in ("x.amax(dim, keepdim=True)", "0"):
        yield f"m = {most}; y = x - m - (x - m).exp().sum(dim, keepdim=True).log()"
    yield "y = x - x.logsumexp(dim, keepdim=True)"
    yield "y = (x - x.logsumexp(dim, keepdim=True)).exp()"


def rms_forms():
    for up, square, mean, root, product in choices(
        ("x", "x.float()"),
        ("v * v", "v.pow(2)", "v.square()"),
        ("s.mean(dim, keepdim=True)", "s.sum(dim, keepdim=True) / n", "(s / n).sum(dim, keepdim=True)"),
        (
            *("torch.rsqrt(m + 1e-6)", "1 / (m + 1e-6).sqrt()", "(m + 1e-6) ** -0.5", "m.rsqrt()"),
            *(
                "1 / (m.sqrt() + 1e-6)",
                "1 / (m.sqrt() + 1e-12)",
                "1 / m.sqrt().clamp(min=1e-12)",
                "torch.rsqrt(m) + 0.0",
            ),
        ),
        ("v * r", "w * (v * r).to(x.dtype)", "v * (r * w)", "(v * w) * r", "(v * r) * (1 + w)"),
    ):
        yield f"v = {up}; s = {square}; m = {mean}; r = {root}; y = {product}"
    for norm in ("x.norm(dim=dim, keepdim=True)", "x.pow(2).sum(dim, keepdim=True).sqrt()"):
        for end in ("+ 1e-12", ".clamp(min=1e-12)", ""):
            yield f"y = x / ({norm}){end} * n ** 0.5 * w"
    yield "y = F.normalize(x, dim=dim) * n ** 0.5 * w"


def layer_forms():
    for up, variance, root, end in choices(
        ("x", "x.float()"),
        (
            *("v.var(dim, keepdim=True, unbiased=False)", "d.pow(2).mean(dim, keepdim=True)"),
            *("(d * d).sum(dim, keepdim=True) / n", "(v * v).mean(dim, keepdim=True) - m * m"),
            *("v.std(dim, keepdim=True, unbiased=False) ** 2", "v.var(dim, keepdim=True)"),
        ),
        (
            "d / (s + 1e-5).sqrt()",
            "d * torch.rsqrt(s + 1e-5)",
            "d / (s.sqrt() + 1e-5)",
            "d / (s.sqrt() + 1e-12)",
            "d / s.sqrt()",
        ),
        ("y", "y.to(x.dtype) * w + b", "w * y + b", "y + 1e-12"),
    ):
        yield f"v = {up}; m = v.mean(dim, keepdim=True); d = v - m; s = {variance}; y = {root}; y = {end}"


KERNEL = math.sqrt(2 / math.pi)
ACTIVATIONS = (
    *("torch.where(x > 0, x, 0)", "torch.where(x < 0, 0, x)", "torch.where(x <= 0, 0.0, x)", "x * (x > 0)"),
    *("(x + x.abs()) * 0.5", "(x + x.abs()) / 2", "x.clamp(min=0) + 0.0", "torch.where(x > 0, x, 1e-20)"),
    *("x.maximum(x * 0)", "x - x.clamp(max=0)", "x.masked_fill(x < 0, 0)"),
    *(
        "x * torch.sigmoid(x)",
        "x / (1 + (-x).exp())",
        "x * (1 / (1 + torch.exp(-x)))",
        "x * 0.5 * (1 + torch.tanh(x / 2))",
    ),
    *("x * x.exp() / (1 + x.exp())", "x * torch.sigmoid(x) + 1e-20"),
    *("1 / (1 + (-x).exp())", "x.exp() / (1 + x.exp())", "0.5 * (1 + torch.tanh(0.5 * x))"),
    *("0.5 * x * (1 + torch.erf(x / 2 ** 0.5))", "x * 0.5 * (1 + torch.erf(x * 0.7071067811865476))"),
    *(
        "(torch.erf(x / 2 ** 0.5) * x + x) * 0.5",
        "x * (1 + torch.erf(x / 2 ** 0.5)) / 2",
        "x * (0.5 + 0.5 * torch.erf(x / 2 ** 0.5))",
    ),
    *(
        "0.5 * x * (1 + torch.tanh(K * (x + 0.044715 * x ** 3)))",
        "x * (torch.tanh(K * x * (1 + 0.044715 * x * x)) + 1) / 2",
    ),
    *(
        "0.5 * (x * (1 + torch.tanh(K * (x + 0.044715 * x * x * x))))",
        "x * torch.sigmoid(2 * K * (x + 0.044715 * x ** 3))",
    ),
    *(
        "x * torch.tanh(F.softplus(x))",
        "x * torch.tanh((1 + x.exp()).log())",
        "x * torch.tanh(torch.log1p(torch.exp(x)))",
    ),
    *(
        "x * F.relu6(x + 3) / 6",
        "x * (F.relu6(x + 3) / 6)",
        "x * (x + 3).clamp(0, 6) * (1 / 6)",
        "x * (x / 6 + 0.5).clamp(0, 1)",
    ),
    *("F.relu6(x + 3) / 6", "(x / 6 + 0.5).clamp(0, 1)", "(x + 3).clamp(0, 6) * (1 / 6)"),
    *(
        "torch.log(torch.sigmoid(x))",
        "-F.softplus(-x)",
        "-torch.log(1 + torch.exp(-x))",
        "x.clamp(max=0) - torch.log1p((-x.abs()).exp())",
    ),
    "1.0507009873554804934193349852946 * torch.where(x > 0, x, 1.6732632423543772848170429916717 * torch.expm1(x))",
    "1.0507009873554805 * (x.clamp(min=0) + (1.6732632423543772 * (torch.exp(x) - 1)).clamp(max=0))",
)

FAMILIES = {"softmax": softmax_forms, "rms": rms_forms, "layer": layer_forms}


def forward_of(texts: list[str], dim: int):
    codes = [compile(text, "written", "exec") for text in texts]

    def forward(s, x):
        results = []
        for code in codes:
            scope = {"x": x, "w": s.w, "b": s.b, "dim": dim, "n": COLUMNS, "torch": torch, "F": F, "K": KERNEL}
            if dim != -1:
                scope["w"], scope["b"] = s.w[:, None], s.b[:, None]
            exec(code, scope)  # noqa: S102 - text of this file
            results.append(scope["y"])
        return results

    return forward


def differences(
    got: torch.Tensor, want: torch.Tensor, x: torch.Tensor, cancelled: torch.Tensor | float
) -> torch.Tensor:
    """Where results differ in kind, or by more than roundings: of the result, and of what cancels in it."""
    assert got.dtype == want.dtype and got.shape == want.shape
    kinds = (got.isnan() != want.isnan()) | (got.isinf() != want.isinf()) | (got.isinf() & (got != want))
    kinds |= (got == 0) & (want == 0) & (got.signbit() != want.signbit())
    # PyTorch flushes what is below the normal numbers in some functions: its logarithm is finite or -inf.
    info = torch.finfo(x.dtype)
    finite = torch.where(got.isinf(), want, got).double()
    kinds &= ~((finite < math.log(info.smallest_normal) + 1) & (finite > math.log(info.smallest_normal * info.eps) - 2))
    # Compositions round at every step in the type of x.
    steps = max(torch.finfo(x.dtype).eps, torch.finfo(want.dtype).eps) * 16
    g, w = got.double(), want.double()
    size = w.abs() + cancelled
    apart = (g - w).abs() > steps * size + torch.finfo(x.dtype).smallest_normal
    return kinds | (apart & w.isfinite() & g.isfinite())


def compare(texts: list[str], dtype: torch.dtype, dim: int = -1, family: str = "") -> list[str]:
    """The ops of the canonical form of all of them in one module, which is run beside eager."""
    rows = special_rows(dtype)
    x = rows if dim == -1 else rows.T.contiguous()[None].contiguous()
    generator = torch.Generator().manual_seed(1)
    w, b = (nn.Parameter(torch.randn(COLUMNS, generator=generator).to(dtype)) for _ in range(2))
    written = module(forward_of(texts, dim), w=w, b=b)
    traced = trace_module(written, (x,), {})
    graph = canonical(traced.graph)
    values = Executor(graph).run_all({**traced.flatten((x,), {}), **traced.state()})
    with torch.no_grad():
        wants = written(x)
    for text, name, want in zip(texts, graph["outputs"], wants, strict=True):
        got = values[name]
        numbers = x.double().nan_to_num(0, 0, 0)
        if family == "layer":  # errors of the mean are seen through the root
            spread = (numbers.var(dim, keepdim=True, unbiased=False) + 1e-5).rsqrt()
            cancelled = numbers.abs().amax(dim, keepdim=True) * spread + 2
            # PyTorch's own layer_norm has no one answer beyond: NaN or 0.
            huge = x.double().abs() > torch.finfo(torch.float32).max ** 0.5 / COLUMNS
            got = torch.where(huge.any(dim, keepdim=True), want, got)
            got = torch.where((got == 0) & (want == 0), want, got)  # of a difference, of either sign
        elif family == "activation":
            cancelled = numbers.abs() if "x * " in text or "x)" not in text else 1.0
        else:
            cancelled = numbers.abs().amax(dim, keepdim=True) if "log" in text else 0.0
            if family == "softmax":  # the error of what is raised to a power
                below = (numbers.amax(dim, keepdim=True) - numbers).clamp(max=200)
                cancelled = cancelled + below * want.double().abs().nan_to_num(0, 0, 0)
        wrong = differences(got, want, x, cancelled)
        at = [tuple(i) for i in wrong.nonzero()[:3].tolist()]
        assert not wrong.any(), (
            f"{text} in {dtype} over dim {dim}: at x = {[x[i].item() for i in at]} "
            f"{[got[i].item() for i in at]}, not {[want[i].item() for i in at]}; {ops(graph)}"
        )
    return ops(graph)


def some(forms: list, count: int, seed: int) -> list:
    return forms if len(forms) <= count else random.Random(seed).sample(forms, count)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: str(t).removeprefix("torch."))
@pytest.mark.parametrize("dim", [-1, 1])
@pytest.mark.parametrize("family", FAMILIES)
def test_written_rows_keep_their_values(family, dim, dtype):
    compare(some(list(FAMILIES[family]()), FORMS, 2 * TYPES.index(dtype) + dim), dtype, dim, family)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: str(t).removeprefix("torch."))
def test_written_activations_keep_their_values(dtype):
    compare([f"y = {text}" for text in ACTIVATIONS], dtype, family="activation")


RECOGNIZED = {
    "softmax": "e = (x - x.amax(dim, keepdim=True)).exp(); y = e / e.sum(dim, keepdim=True)",
    "log_softmax": "m = x.amax(dim, keepdim=True); y = x - m - (x - m).exp().sum(dim, keepdim=True).log()",
    "rms_norm": "v = x.float(); y = w * (v * torch.rsqrt(v.pow(2).mean(dim, keepdim=True) + 1e-6)).to(x.dtype)",
    "layer_norm": "d = x - x.mean(dim, keepdim=True); y = d / (d.pow(2).mean(dim, keepdim=True) + 1e-5).sqrt() * w + b",
    "silu": "y = x * torch.sigmoid(x)",
    "gelu": "y = 0.5 * x * (1 + torch.tanh(K * (x + 0.044715 * x ** 3)))",
    "hardswish": "y = x * F.relu6(x + 3) / 6",
    "mish": "y = x * torch.tanh(F.softplus(x))",
    "relu": "y = torch.where(x < 0, 0, x)",
}


@pytest.mark.parametrize("op", RECOGNIZED)
def test_what_has_the_same_values_is_recognized(op):
    family = "layer" if op == "layer_norm" else "softmax" if "sum" in RECOGNIZED[op] else "activation"
    assert compare([RECOGNIZED[op]], torch.float32, family=family) == [op]


@pytest.mark.parametrize("number", [1e-12, 1e-20, 1e-30, 1e-37])
def test_a_number_that_is_written_is_not_nothing(number):
    texts = (
        "e = (x - x.amax(dim, keepdim=True)).exp(); y = (e / e.sum(dim, keepdim=True) + {}).log()",
        "e = (x - x.amax(dim, keepdim=True)).exp(); y = e / e.sum(dim, keepdim=True) + {}",
        "y = x / (x.pow(2).mean(dim, keepdim=True).sqrt() + {})",
        "y = torch.where(x > 0, x, {})",
    )
    found = compare([text.format(number) for text in texts], torch.float32)
    assert not set(found) & {"log_softmax", "rms_norm", "relu"} and found.count("add") >= 3


def test_a_variance_that_cancels_stays_as_written():
    """Of a constant row of large numbers it is a rounding, of either sign: the root of one is NaN."""
    text = (
        "v = x.float(); m = v.mean(dim, keepdim=True); s = (v * v).mean(dim, keepdim=True) - m * m; "
        "y = (v - m) / (s + 1e-5).sqrt() * w"
    )
    for dtype in TYPES:
        assert "layer_norm" not in compare([text], dtype, family="layer")


def test_the_sign_of_zero_is_kept_before_a_norm():
    """x + 0 of -0 is 0: it is no part of a norm, which keeps the sign."""
    norm = "y = w * (v * torch.rsqrt(v.pow(2).mean(dim, keepdim=True) + 1e-6))"
    assert compare([f"v = x - -0.0; {norm}"], torch.float32) == ["sub", "rms_norm"]
    assert compare([f"v = x - 0.0; {norm}"], torch.float32) == ["rms_norm"]
