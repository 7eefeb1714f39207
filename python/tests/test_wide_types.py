"""Ops that are written out for types that they do not know themselves."""

from __future__ import annotations

import pytest
import torch
from tessera.common.errors import Error
from tessera.common.wide_types import WRITTEN_OUT

grouped = WRITTEN_OUT[torch.ops.aten._grouped_mm.default]


@pytest.mark.parametrize(
    ("a", "b", "ends"),
    [
        ((24, 16), (3, 16, 32), [8, 8, 24]),  # rows of a, one group empty
        ((3, 24, 16), (16, 32), [4, 20, 32]),  # columns of b
        ((24, 48), (48, 32), [16, 16, 48]),  # parts of the sum
        ((3, 24, 16), (3, 16, 32), None),
    ],
)
def test_products_of_groups_are_torchs(a, b, ends):
    torch.manual_seed(0)
    a, b = torch.randn(a), torch.randn(b)
    offs = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    want = torch.ops.aten._grouped_mm.default(a, b, offs)
    torch.testing.assert_close(grouped(a.double(), b.double(), offs).float(), want, rtol=1e-5, atol=1e-5)


def test_a_mixture_of_experts_as_torch_spells_it_is_traced_and_checked():
    """What transformers' experts run by default."""

    from tessera.judging.rewrite_check import check_rewrites
    from tessera.tracing.held import hold
    from torch import nn

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(32, 4)
            self.w = nn.Parameter(torch.randn(4, 32, 64) / 6)

        def forward(self, x):
            weight, expert = self.router(x).softmax(-1).max(-1)
            order = expert.argsort(stable=True)
            ends = nn.functional.one_hot(expert, 4).sum(0).cumsum(0).to(torch.int32)
            y = torch.nn.functional.grouped_mm(x[order], self.w, offs=ends)
            return torch.empty_like(y).index_copy(0, order, y) * weight[:, None]

    torch.manual_seed(0)
    held = hold(Experts().bfloat16().eval(), (torch.randn(24, 32, dtype=torch.bfloat16),), {}, "bf16")
    assert any("_grouped_mm" in n["op"] for n in held.graph["nodes"])
    reply = check_rewrites(held, held.graph)
    assert (reply["ok"], reply["form"], reply["in_own_types"]) == (True, "fp64", []), reply


def test_a_scale_of_the_result_has_no_meaning():
    a, b, one = torch.randn(4, 8), torch.randn(8, 4), torch.ones(())
    scaled = WRITTEN_OUT[torch.ops.aten._scaled_mm.default]
    torch.testing.assert_close(scaled(a, b, one, one), a @ b)
    with pytest.raises(Error, match="TS0222"):
        scaled(a, b, one, one, scale_result=one)
