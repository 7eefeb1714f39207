"""Copies of what a call is given, for calls that nobody made."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.laid import cloned


def copies(
    args: tuple, kwargs: dict, own: dict[int, object] | None = None, in_storage: Collection[int] = frozenset()
) -> tuple[tuple, dict]:
    """Of the tensors; one that is given twice is one copy. By identity: `own`, what stands for itself; `in_storage`, tensors that keep
    their places in their storages."""
    made = dict(own or {})

    def copied(t: torch.Tensor) -> torch.Tensor:
        if id(t) not in made:
            made[id(t)] = cloned(t, storage=id(t) in in_storage)
        return made[id(t)]

    return pytree.tree_map_only(torch.Tensor, copied, (tuple(args), dict(kwargs)))


def copies_of_all(args: tuple, kwargs: dict, own: dict[int, object]) -> tuple[tuple, dict]:
    """Of the tensors, and of the objects that a call may change, such as a cache of keys and values, with all that they hold. What
    cannot be copied, and a module, is itself."""
    made = dict(own)  # also what copy.deepcopy made

    def copied(x):
        if id(x) in made or isinstance(x, nn.Module):
            return made.get(id(x), x)
        if isinstance(x, torch.Tensor):
            made[id(x)] = cloned(x)
            return made[id(x)]
        with contextlib.suppress(Exception):
            return copy.deepcopy(x, made)
        return x

    return pytree.tree_map(copied, (tuple(args), dict(kwargs)))
