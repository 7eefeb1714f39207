"""Copies of what a call is given, for calls that nobody made."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Collection

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tessera.common.laid import cloned, is_strided
from tessera.running.plain_tensors import is_plain


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
    """Of the tensors, which share memory and lie in it as they do, and of the objects that a call may change, such as a cache of keys
    and values, with all that they hold. What cannot be copied, and a module, is itself."""
    made = dict(own)  # also what copy.deepcopy made
    storages: dict[int, torch.UntypedStorage] = {}

    def copied(x):
        if id(x) in made or isinstance(x, nn.Module):
            return made.get(id(x), x)
        if isinstance(x, torch.Tensor):
            made[id(x)] = _placed(x, storages) if _keeps_its_place(x) else cloned(x)
            return made[id(x)]
        with contextlib.suppress(Exception):
            return copy.deepcopy(x, made)
        return x

    return pytree.tree_map(copied, (tuple(args), dict(kwargs)))


_MOST_BYTES, _MOST_TIMES = 1 << 26, 16  # of a storage: any, and of the tensor's own


def _keeps_its_place(t: torch.Tensor) -> bool:
    """Whether all of its storage is copied: of a small part of a large one the rest would cost more memory than may be left."""
    if not is_strided(t) or t.numel() == 0 or t.is_conj() or t.is_neg() or not is_plain(t):
        return False
    return t.untyped_storage().nbytes() <= max(_MOST_BYTES, _MOST_TIMES * t.nbytes)


def _placed(t: torch.Tensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    key = t.untyped_storage()._cdata
    if key not in storages:
        storages[key] = t.untyped_storage().clone()
    made = torch.empty(0, dtype=t.dtype, device=t.device).set_(storages[key], t.storage_offset(), t.shape, t.stride())
    return nn.Parameter(made, requires_grad=False) if type(t) is nn.Parameter else made
