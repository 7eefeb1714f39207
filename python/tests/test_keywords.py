"""Arguments by position and by name, in any order, when traced and when called."""

from __future__ import annotations

import itertools

import pytest
import torch
from guarding import composed, served
from tessera.tracing.held import hold
from torch import nn


class Named(nn.Module):
    def forward(self, a, b=None, c=None, scale=2.0):
        return a + 2 * b + 3 * c * scale


class KeywordOnly(nn.Module):
    def forward(self, a, *, c, b):
        return a + 2 * b + 3 * c


class Others(nn.Module):
    """Sees the order of what it does not name."""

    def forward(self, b, **others):
        first, second = others.values()
        return first + 2 * b + 3 * second


ORDERS = list(itertools.permutations("abc"))
SAME = {order: (-2, -1) if order.index("a") < order.index("c") else (1, 2) for order in ORDERS}


@pytest.mark.parametrize("traced", ORDERS, ids="".join)
@pytest.mark.parametrize("cls", [Named, KeywordOnly, Others])
def test_any_order_of_keywords(cls, traced):
    m = cls()
    with torch.no_grad():
        held = hold(m, (), {name: torch.randn(3) for name in traced})
        steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
        made = held.compose({"graph": held.graph, "steps": steps}, "eager")
        for order in ORDERS:
            given = {name: torch.randn(3) for name in order}
            assert torch.equal(made(**given), m(**given)), order
            assert held.traced.flatten((), given)["b"] is given["b"]
        status = made.status()
    alike = [order for order in ORDERS if cls is not Others or order.index("a") - order.index("c") in SAME[traced]]
    assert status["calls"] == len(ORDERS) and status["served"] == len(alike)


@pytest.mark.parametrize("by_place", range(4))
def test_some_by_place(by_place):
    m, names = Named(), ["a", "b", "c"]
    made = composed(m, *(torch.randn(3) for _ in names))
    for order in ORDERS:
        given = {name: torch.randn(3) for name in names}
        place = [given[n] for n in names[:by_place]]
        rest = {n: given[n] for n in order if n not in names[:by_place]}
        with torch.no_grad():
            assert torch.equal(made(*place, **rest), m(*place, **rest))
    assert made.status()["served"] == made.status()["calls"] and served(made, *given.values())
