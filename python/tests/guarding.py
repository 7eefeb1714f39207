"""What the tests of guards share: a module traced and composed op by op, and calls of it held against the original's."""

from __future__ import annotations

import contextlib
import copy
import warnings

import torch
from tessera.running.compose import ComposedModule, composed_of
from tessera.tracing.tracer import trace_module
from torch import nn
from torch.utils import _pytree as pytree


def composed(module: nn.Module, *args, **kwargs) -> ComposedModule:
    """Traced with this call; nothing is searched."""
    traced = trace_module(module.eval(), args, kwargs)
    steps = [{"kind": "aten", "node": n["name"]} for n in traced.graph["nodes"]]
    return composed_of(traced, args, kwargs, {"graph": traced.graph, "steps": steps, "leftover": []})


def kinds(made: ComposedModule) -> dict[str, int]:
    return {e["kind"]: e["count"] for e in made.status()["fallbacks"]}


def _leaves(result) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def same(made: ComposedModule, *args, **kwargs) -> None:
    """As the original, from arguments and state that are copied for it with what they share: results, their types and strides, and
    what is written to."""
    memo: dict = {}
    original = copy.deepcopy(made.original, memo)
    given = copy.deepcopy((args, kwargs), memo)
    for copied, parameter in zip(original.parameters(), made.original.parameters(), strict=True):
        copied.grad = parameter.grad
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = original(*given[0], **given[1])
        found = made(*args, **kwargs)
    everything = ((expected, found), (given, (args, kwargs)), (original.state_dict(), made.state_dict()))
    for wanted, got in everything:
        for a, b in zip(_leaves(wanted), _leaves(got), strict=True):
            torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-6, equal_nan=True)
            if a.layout == torch.strided:
                assert a.stride() == b.stride() and torch.equal(a.signbit(), b.signbit())


def served(made: ComposedModule, *args, **kwargs) -> bool:
    """Whether the plan ran in a call that gives what the original does; twice, so that the extension's guards are asked, too."""
    before = made.status()
    for _ in range(2):
        same(made, *args, **kwargs)
    now = made.status()
    ran = now["served"] - before["served"]
    assert now["calls"] - before["calls"] == 2 and ran in (0, 2), now["fallbacks"]
    return ran == 2


@contextlib.contextmanager
def changed(place, name: str, value):
    """An attribute for a time."""
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield
    finally:
        setattr(place, name, before)
