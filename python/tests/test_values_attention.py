"""Written attention whose mask may take every key from a query: NaN there, as softmax of nothing is, whatever runs it."""

import math

import pytest
import torch
from graph_tools import canonical, module, ops
from tessera.common.reference import Executor
from tessera.tracing.tracer import trace_module

INF = math.inf


def attend(scores, v):
    return scores.softmax(-1) @ v


BY_CONDITION = {
    "filled": lambda s, q, k, v, keep: attend((q @ k.mT * 0.3).masked_fill(~keep, -INF), v),
    "chosen": lambda s, q, k, v, keep: attend(torch.where(keep, q @ k.mT * 0.3, -INF), v),
    "added": lambda s, q, k, v, keep: attend(q @ k.mT * 0.3 + torch.zeros_like(q[..., :1]).masked_fill(~keep, -INF), v),
    "over a bias": lambda s, q, k, v, keep: attend((q @ k.mT * 0.3 + s.bias.to(q.dtype)).masked_fill(~keep, -INF), v),
    "three dims": lambda s, q, k, v, keep: attend((q[0] @ k[0].mT).masked_fill(~keep[0], -INF), v[0]),
    "lowest": lambda s, q, k, v, keep: attend((q @ k.mT).masked_fill(~keep, torch.finfo(q.dtype).min), v),
}


def run(forward, *args):
    written = module(forward, bias=torch.randn(9, 9, generator=torch.Generator().manual_seed(3)))
    traced = trace_module(written, args, {})
    graph = canonical(traced.graph)
    values = {**traced.flatten(args, {}), **traced.state()}
    (got,) = Executor(graph).run_all(values).values()
    return graph, got, written(*args)


def arguments(dtype):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 9, 8, generator=generator).to(dtype) for _ in range(3))
    keep = torch.rand(2, 1, 9, 9, generator=generator) > 0.5
    keep[0, 0, 4] = False
    keep[1, 0, :, 1:] = False
    return q, k, v, keep


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", BY_CONDITION)
def test_a_row_that_is_masked_as_a_whole(name, dtype):
    args = arguments(dtype)
    graph, got, want = run(BY_CONDITION[name], *args)
    assert "scaled_dot_product_attention" in ops(graph) and "softmax" not in ops(graph)
    assert want.isnan().any() or name == "lowest"
    torch.testing.assert_close(got, want.to(got.dtype), rtol=3e-2, atol=3e-2, equal_nan=True)


def test_a_mask_of_the_caller():
    q, k, v, keep = arguments(torch.float32)
    added = torch.zeros(keep.shape).masked_fill(~keep, -INF)
    _, got, want = run(lambda s, q, k, v, m: attend(q @ k.mT * 0.3 + m, v), q, k, v, added)
    assert want.isnan().any()
    torch.testing.assert_close(got, want, equal_nan=True)


def test_masks_that_are_known():
    at = torch.arange(9)
    known = {
        "leaves a key to all": (at[None] <= at[:, None]) & (at[None] > at[:, None] - 3),
        "leaves none to some": (at[None] < at[:, None]),
    }
    q, k, v, _ = arguments(torch.float32)
    for name, keep in known.items():
        graph, got, want = run(lambda s, q, k, v, keep=keep: attend((q @ k.mT).masked_fill(~keep, -INF), v), q, k, v)
        torch.testing.assert_close(got, want, equal_nan=True)
        assert ("where" in ops(graph)) is (name == "leaves none to some")
        assert want.isnan().any() == (name == "leaves none to some")


@pytest.mark.parametrize("rounding", ["trunc", "floor"])
@pytest.mark.parametrize("place", ["scores", "queries", "keys"])
def test_a_quotient_that_is_rounded_is_no_scale(place, rounding):
    def over(x):
        return torch.div(x, 0.25, rounding_mode=rounding)

    q, k, v, _ = arguments(torch.float32)
    written = {
        "scores": lambda s, q, k, v: attend(over(q @ k.mT), v),
        "queries": lambda s, q, k, v: attend(over(q) @ k.mT, v),
        "keys": lambda s, q, k, v: attend(q @ over(k.mT), v),
    }[place]
    graph, got, want = run(written, q, k, v)
    assert "div" in ops(graph)
    torch.testing.assert_close(got, want)
