"""Results that move by much when a rounding does: what verification end to end makes of them."""

from __future__ import annotations

import pytest
import torch
from composing import Mlp
from tessera.judging.module_check import Expected
from tessera.judging.rounding_noise import Noise
from tessera.tracing.held import hold
from torch import nn

BF16 = torch.bfloat16


class Experts(nn.Module):
    """The first expert is better than the second, for some tokens by less than a rounding. Eager takes the first of equal ones,
    and so chooses as fp64 does."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 1)
        self.experts = nn.Parameter(torch.randn(3, 16, 16) / 4)

    def forward(self, x):
        score = self.router(x).abs() + 1
        margin = torch.where(x[:, :1] > 1, 1e-4, 0.5).to(x.dtype)
        chosen = torch.cat((score, score - margin, -score), -1).argmax(-1)
        return (self.experts[chosen] * x[:, None]).sum(-1), chosen


def expected_of(module, x, precision=None):
    torch.manual_seed(0)
    held = hold(module.eval(), (x,), {}, precision)
    return held, Expected(held, 0)


@pytest.fixture
def experts():
    torch.manual_seed(0)
    return expected_of(Experts().to(BF16), torch.randn(64, 16, dtype=BF16))


def with_second_expert(held, expected, tokens):
    x = expected.args[0]
    with torch.no_grad():
        y, chosen = held.module(x)
        assert bool((chosen == 0).all())
        y[tokens] = (held.module.experts[1] * x[tokens][:, None]).sum(-1)
    chosen[tokens] = 1
    return [y, chosen]


def test_another_expert_at_a_tie_is_permitted_and_other_results_are_not(experts):
    held, expected = experts
    ties = (expected.args[0][:, 0] > 1).nonzero().flatten()
    assert 4 < len(ties) < 20
    few = with_second_expert(held, expected, ties[:2])
    assert "rms error" in expected.judge(few, "bf16")[1]
    assert expected.permit_unsteady(held) and expected.unsteady > 0.1
    assert expected.judge(few, "bf16")[1] == ""
    for wrong in (
        [torch.zeros_like(few[0]), few[1]],
        with_second_expert(held, expected, torch.arange(64)),
        [few[0], few[1] + 1],
    ):
        assert expected.judge(wrong, "bf16")[1]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_where_nothing_is_chosen_nothing_more_is_permitted(precision):
    torch.manual_seed(0)
    held, expected = expected_of(Mlp(), torch.randn(8, 16), precision)
    before = [dict(row) for row in expected.permitted]
    assert not expected.permit_unsteady(held) and expected.permitted == before
    results = [
        reference.value.to(dtype) for reference, (dtype, _) in zip(expected.references, expected.kinds, strict=True)
    ]
    assert expected.judge(results, precision)[1] == ""
    assert expected.judge([1.05 * r for r in results], precision)[1]


@pytest.mark.parametrize("dtype", [torch.float32, BF16, torch.float16])
def test_noise_moves_rounded_results_by_a_unit_and_leaves_the_rest(dtype):
    x, w = torch.rand(64, 32, dtype=dtype) + 0.5, torch.eye(32, dtype=dtype)
    with Noise("bf16", torch.device("cpu"), 0):
        moved, same = x @ w, [x.t().clone(), torch.cat((x, x)), x.relu(), x.argmax(-1), torch.arange(4.0)]
    step = (moved.double() / x.double() - 1).abs()
    assert 0.1 < float((step > 0).double().mean()) <= 1
    assert float(step.max()) <= torch.finfo(dtype).eps
    for got, want in zip(same, [x.t(), torch.cat((x, x)), x, x.argmax(-1), torch.arange(4.0)], strict=True):
        assert torch.equal(got, want)
    with Noise("tf32", torch.device("cpu"), 0):
        assert dtype != torch.float32 or float(((x @ w) / x - 1).abs().max()) > 2.0**-12
