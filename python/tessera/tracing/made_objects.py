"""Objects that a call makes and returns, such as caches of keys and values: torch.export takes their tensors, and what they are besides
is kept beside them. A cache that is given to a call is changed by it, list by list, which no graph of tensors does: such a call is
refused."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.errors import BY_GRAPHS, fail
from tessera.running.result_objects import NotTakenApart, containers_in, taken_apart
from tessera.tracing.picture import Picture


def _cache_class() -> type | None:
    return getattr(sys.modules.get("transformers.cache_utils"), "Cache", None)


@dataclass
class Nesting:
    """Of a module's result, once it was called: None in the place of a tensor, and what else there is."""

    leaves: list | None = None
    spec: pytree.TreeSpec | None = None

    def of(self, traced):
        """What was traced with a flat result, with the module's own."""
        if self.leaves is None:
            return traced
        tensors = iter(traced.results)
        results = [next(tensors) if leaf is None else ("constant", leaf[0]) for leaf in self.leaves]
        return replace(traced, results=results, out_spec=self.spec)


@contextlib.contextmanager
def flat(module: nn.Module, args: tuple, kwargs: dict) -> Iterator[Nesting]:
    """Meanwhile forward, where its result holds objects with tensors, gives the tensors of its result, one after the other."""
    nesting = Nesting()
    forward, own = module.forward, module.__dict__.get("forward")
    lasting = {*Picture(module).objects(), *map(id, pytree.tree_leaves((args, kwargs)))}

    @functools.wraps(forward)
    def flattened(*args, **kwargs):
        older = lasting | set(map(id, containers_in((args, kwargs))))
        result = forward(*args, **kwargs)
        try:
            apart = taken_apart(result, older)
        except NotTakenApart as e:
            raise fail(
                "TS0202",
                "graph.untraceable",
                f"the result cannot be taken apart: {e}",
                expected="a result of tensors, or of objects that the call makes",
                helps=[BY_GRAPHS],
            ) from e
        leaves, spec = pytree.tree_flatten(apart)
        if spec == pytree.tree_structure(result):
            return result
        nesting.spec = spec
        nesting.leaves = [None if isinstance(x, torch.Tensor) else (x,) for x in leaves]
        return tuple(x for x in leaves if isinstance(x, torch.Tensor))

    module.__dict__["forward"] = flattened
    try:
        yield nesting
    finally:
        del module.__dict__["forward"]
        if own is not None:
            module.__dict__["forward"] = own


def refuse_given(args: tuple, kwargs: dict) -> None:
    """Error: TS0202."""
    cache = _cache_class()
    if cache is None:
        return
    for leaf in pytree.tree_leaves((args, kwargs), is_leaf=lambda x: isinstance(x, cache)):
        if isinstance(leaf, cache):
            raise fail(
                "TS0202",
                "graph.untraceable",
                f"a {type(leaf).__name__} is among the inputs: the call changes it beside its tensors",
                expected="tensors",
                helps=["without the cache the module can be traced; one that it makes itself is a result", BY_GRAPHS],
            )
