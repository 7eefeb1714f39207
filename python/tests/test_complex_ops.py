"""Ops on complex tensors within a module: their form on real and imaginary parts gives what PyTorch gives."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tessera.common.errors import Error
from tessera.common.reference import Executor
from tessera.tracing.tracer import trace_module
from torch import nn


class Of(nn.Module):
    """f of two complex tensors, z and w, of the shape of the module's real inputs x and y."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x, y):
        made = self.f(torch.complex(x, y), torch.complex(y, x + 1), x)
        return torch.view_as_real(made) if made.is_complex() else made


def written(z, where, what):
    z = z.clone()
    z[where] = what
    return z


def scaled_and_shifted(z, x):
    z = z * 1
    z.mul_(2)
    z.add_(x)
    return z


ROWS, FIRST = torch.tensor([0, 1]), torch.tensor([2, 0])

CASES = {
    # Sums
    "a real summand": lambda z, w, x: z + x,
    "a complex subtrahend": lambda z, w, x: x - z,
    "a scaled subtrahend": lambda z, w, x: torch.sub(x, z, alpha=3),
    "a scaled summand": lambda z, w, x: torch.add(z, w, alpha=3),
    "a larger real summand": lambda z, w, x: z[0] + x,
    "a smaller real minuend": lambda z, w, x: x[0] - z,
    "a complex number": lambda z, w, x: z + (1 - 2j),
    "a complex number from real": lambda z, w, x: x - (1 - 2j),
    "from a complex number": lambda z, w, x: (1 - 2j) - z,
    "from a real number": lambda z, w, x: 2 - z,
    "real from a complex number": lambda z, w, x: (2 + 3j) - x,
    "in double precision": lambda z, w, x: z + x.double(),
    "integers": lambda z, w, x: z * torch.arange(8) + torch.arange(8),
    "in place": lambda z, w, x: scaled_and_shifted(z, x),
    "a running sum": lambda z, w, x: z.cumsum(1),
    # Products
    "an imaginary factor": lambda z, w, x: 1j * x,
    "a complex factor": lambda z, w, x: z * (1 - 2j),
    "a tensor of one number": lambda z, w, x: z * torch.tensor(1j),
    "powers": lambda z, w, x: z**3 + z.square(),
    "linear": lambda z, w, x: F.linear(z, w[0]),
    "linear with bias": lambda z, w, x: F.linear(z[0], w[0], w[0, 0, :5]),
    "einsum": lambda z, w, x: torch.einsum("bnt,bmt->bnm", z, w.conj()),
    "a sum and a product": lambda z, w, x: torch.baddbmm(z[:, :5, :5], z, w.mT),
    "vecdot": lambda z, w, x: torch.linalg.vecdot(z, w),
    # Quotients
    "a quotient": lambda z, w, x: z / w,
    "a quotient of what is far from one": lambda z, w, x: (z * 1e-25) / (w * 1e-25),
    "one by": lambda z, w, x: 1 / w,
    "real by complex": lambda z, w, x: x / w,
    "by a complex number": lambda z, w, x: z / (2 - 1j),
    "by a real tensor": lambda z, w, x: z / (x.abs() + 1),
    "a complex number by": lambda z, w, x: (2 + 1j) / w,
    # Functions
    "exp": lambda z, w, x: z.exp(),
    "exp of imaginary": lambda z, w, x: torch.exp(-1j * x),
    "log": lambda z, w, x: z.log(),
    "a norm": lambda z, w, x: torch.linalg.norm(z, dim=-1),
    "a norm with its dim": lambda z, w, x: torch.linalg.vector_norm(z, dim=(0, -1), keepdim=True),
    "a kernel of a state space": lambda z, w, x: (
        (z[..., None] * torch.exp(w[..., None] * torch.arange(4))).sum(-2).real
    ),
    # Views and choices
    "padding": lambda z, w, x: F.pad(z[..., :2], (1, 3)),
    "split": lambda z, w, x: torch.mul(*z.split(4, -1)),
    "split by sizes": lambda z, w, x: torch.cat(z.split([3, 5], -1)[::-1], -1),
    "chunks": lambda z, w, x: z.chunk(3, -1)[0] * z.chunk(3, -1)[2].real.sum(),
    "unbind": lambda z, w, x: sum(z.unbind(0)),
    "unfold": lambda z, w, x: z.unfold(-1, 4, 2),
    "repeat": lambda z, w, x: z.repeat(2, 1, 2),
    "an index": lambda z, w, x: z[:, FIRST],
    "indices apart": lambda z, w, x: z[ROWS, :, FIRST],
    "index_select": lambda z, w, x: z.index_select(-1, FIRST),
    "gather": lambda z, w, x: z.gather(-1, torch.ones(2, 5, 3, dtype=torch.long)),
    "a choice": lambda z, w, x: torch.where(x > 0, z, w),
    "a choice or nothing": lambda z, w, x: torch.where(x[0] > 0, z, 0),
    "masked": lambda z, w, x: z.masked_fill(x > 0, 0),
    "squeeze": lambda z, w, x: z[:, :1].squeeze(),
    "squeeze of dims": lambda z, w, x: z[:, :1, :1].squeeze((1, 2)),
    "squeeze of a dim": lambda z, w, x: z[:, :1].squeeze(1),
    "moved dims": lambda z, w, x: z.movedim(0, -1).swapaxes(0, 1).flatten(1),
    "written zero": lambda z, w, x: written(z, (slice(None), 0), 0),
    "written real": lambda z, w, x: written(z, (slice(None), 0), 2.5),
    "written": lambda z, w, x: written(z, (slice(None), 0), w[:, 0]),
    # New tensors
    "full": lambda z, w, x: torch.full((8,), 2 + 1j) * z,
    "ones": lambda z, w, x: torch.ones(8, dtype=torch.cfloat) * z,
    "a constant": lambda z, w, x: z * torch.tensor([1j] * 8),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_give_what_complex_numbers_give(name):
    module, given = Of(CASES[name]), tuple(torch.randn(2, 5, 8) for _ in range(2))
    traced = trace_module(module, given)
    assert not any("complex" in v["dtype"] for v in traced.graph["values"])
    for drawn in (given, tuple(torch.randn(2, 5, 8) for _ in range(2))):
        values = Executor(traced.graph).run_all({**traced.flatten(drawn), **traced.state()})
        torch.testing.assert_close(values[traced.graph["outputs"][0]], module(*drawn), atol=2e-5, rtol=1e-4)


REFUSED = {
    "tanh": lambda z, w, x: z.tanh(),
    "pow": lambda z, w, x: z**0.5,
    "masked_fill": lambda z, w, x: z.masked_fill(x > 0, 1.0),
    "where": lambda z, w, x: torch.where(x > 0, z, x),
    "constant_pad_nd": lambda z, w, x: F.pad(z, (1, 1), value=1.0),
    "linalg_vector_norm": lambda z, w, x: torch.linalg.vector_norm(z, ord=1, dim=-1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_such_form_is_refused_by_its_place(name):
    with pytest.raises(Error) as raised:
        trace_module(Of(REFUSED[name]), (torch.randn(2, 5, 8), torch.randn(2, 5, 8)))
    d = raised.value.diagnostic
    assert d["code"] == "TS0202" and name in d["message"] and "test_complex_ops.py" in d["message"]
