"""Caches of keys and values that Hugging Face's models return, as nestings of tensors.

A cache that a call makes is a result like others; torch.export takes its tensors, and the nesting is kept beside them, for export
cannot decompose a graph with such a result. A cache that is given to a call is changed by it, list by list, which no graph of
tensors does: such a call is refused.
"""

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


def _cache_class() -> type | None:
    return getattr(sys.modules.get("transformers.cache_utils"), "Cache", None)


def _registered(module: nn.Module) -> bool:
    """Whether the module is of transformers' models, and pytree knows their caches by transformers' own functions."""
    if not any(type(m).__module__.startswith("transformers.") for m in module.modules()):
        return False
    try:
        from transformers.integrations.executorch import register_dynamic_cache_export_support
    except ImportError:  # a version without it
        return False
    register_dynamic_cache_export_support()
    return True


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
def flat(module: nn.Module) -> Iterator[Nesting]:
    """Meanwhile forward of a model of transformers gives the tensors of its result, one after the other."""
    nesting = Nesting()
    if not _registered(module):
        yield nesting
        return
    forward, own = module.forward, module.__dict__.get("forward")

    @functools.wraps(forward)
    def flattened(*args, **kwargs):
        result = forward(*args, **kwargs)
        try:
            leaves, nesting.spec = pytree.tree_flatten(result)
        except RuntimeError as e:  # a cache of other layers than transformers takes apart
            raise fail(
                "TS0202",
                "graph.untraceable",
                f"the result holds a cache that cannot be taken apart: {e}",
                expected="a result of tensors",
                helps=["call it with use_cache=False", BY_GRAPHS],
            ) from e
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
