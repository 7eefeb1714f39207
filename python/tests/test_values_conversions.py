"""Conversions that are roundings by their own meaning: they stay in the canonical form, round in the fp64 meaning and in the
bodies of patterns; others round nothing."""

import bodies
import pytest
import torch
from graph_tools import canonical, module, ops
from tessera.common.reference import Executor
from tessera.tracing.tracer import trace_module

X = torch.randn(40, 48, generator=torch.Generator().manual_seed(0)) * 3
EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2)


def meaning(forward, *args):
    traced = trace_module(module(forward), args, {})
    graph = canonical(traced.graph)
    (got,) = Executor(graph).run_all(traced.flatten(args, {}), torch.float64).values()
    return graph, got


@pytest.mark.parametrize("narrow", [*EIGHT, torch.bfloat16, torch.float16])
def test_fake_quantization_rounds(narrow):
    def forward(s, x):
        return (x * 0.5).to(narrow).to(torch.float32) * 2

    _, got = meaning(forward, X)
    assert torch.equal(got.float(), forward(None, X)) and not torch.equal(got.float(), X)
    (pattern,) = bodies.check(module(forward), X)["pointwise"]
    assert "round_" in pattern["body"]["groups"][0]["dag"]


@pytest.mark.parametrize(("narrow", "other"), [(torch.bfloat16, torch.float16), (torch.float16, torch.float32)])
def test_what_is_promoted_was_rounded(narrow, other):
    def forward(s, x, y):
        return (x * 0.5).to(narrow) + y

    y = X.to(other)
    _, got = meaning(forward, X, y)
    torch.testing.assert_close(got.float(), forward(None, X, y))
    assert not torch.allclose(got, (X * 0.5).double() + y.double(), rtol=1e-5)
    (pattern,) = bodies.check(module(forward), X, y)["pointwise"]
    assert "round_" in pattern["body"]["groups"][0]["dag"]


@pytest.mark.parametrize("narrow", EIGHT)
def test_float8_rounds_in_a_module_of_16_bits(narrow):
    def forward(s, x):
        return (x * 0.5).to(narrow).to(torch.bfloat16) * 2

    x = X.bfloat16()
    _, got = meaning(forward, x)
    assert torch.equal(got.bfloat16(), forward(None, x))


def test_the_class_of_the_module_does_not_round():
    """As of every norm in fp32 of a module in bf16: its conversions say in which type PyTorch computes."""
    x = X.bfloat16()
    _, got = meaning(lambda s, x: (x.float() * 0.3).to(torch.bfloat16).float() * 3, x)
    torch.testing.assert_close(got, x.double() * 0.3 * 3)


def test_what_an_input_holds_is_rounded_in_a_module_of_16_bits():
    """Its high and its low part, say."""
    m = torch.nn.Linear(48, 48, dtype=torch.bfloat16)

    def forward(s, x):
        high = x.to(torch.bfloat16)
        return x - high.to(x.dtype), m(high)

    held = module(forward)
    held.m = m
    traced = trace_module(held, (X,), {})
    assert traced.graph["precision"] == "bf16"
    got = Executor(canonical(traced.graph)).run_all(traced.flatten((X,), {}) | traced.state(), torch.float64)
    assert torch.equal(next(iter(got.values())).float(), forward(None, X)[0])


def test_a_product_between_keeps_its_conversion():
    """fp32 to bf16 for a product, as autocast does it: nothing is widened at once."""
    w = torch.randn(48, 16).bfloat16()
    _, got = meaning(lambda s, x, w: ((x * 0.3).to(torch.bfloat16) @ w).float(), X, w)
    torch.testing.assert_close(got, X.double() * 0.3 @ w.double())


@pytest.mark.parametrize(
    "forward",
    [
        lambda s, x: (e := (x - x.amax(-1, True)).to(torch.float8_e5m2).float().exp()) / e.sum(-1, True),
        lambda s, x: x.to(torch.float8_e4m3fn).float() * torch.sigmoid(x),
        lambda s, x: x * torch.rsqrt(x.to(torch.float8_e4m3fn).float().pow(2).mean(-1, True) + 1e-6),
    ],
)
def test_nothing_is_recognized_through_a_rounding(forward):
    graph, _ = meaning(forward, X)
    assert not set(ops(graph)) & {"softmax", "silu", "rms_norm"} and "_to_copy" in ops(graph)
