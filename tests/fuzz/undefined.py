"""What eager leaves undefined: an op that writes to memory which it reads elsewhere. PyTorch refuses some of these; of the rest
the result is whatever the order of its loop makes it (`x.T.add_(x)`), and a graph without writes has another."""

from __future__ import annotations

import torch
from program import Program
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from twin import ERRORS, twin


def is_undefined(p: Program, rounds: list[tuple[int, dict | None]]) -> bool:
    with _Overlaps() as overlaps:
        eager = twin(p)
        for r, change in rounds:
            try:
                eager.call(r, change)
            except ERRORS:
                break
    return overlaps.seen


class _Overlaps(TorchDispatchMode):
    """Whether an op wrote to memory that it also reads as another element."""

    seen = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = zip(func._schema.arguments, args, strict=False)
        named = {a.name: (a, kwargs[a.name]) for a in func._schema.arguments if a.name in kwargs}
        pairs = [*given, *named.values()]
        tensors = [
            (bool(a.alias_info and a.alias_info.is_write), t)
            for a, v in pairs
            for t in pytree.tree_leaves(v)
            if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.numel()
        ]
        for i, (writes, w) in enumerate(tensors):
            others = (t for k, (_, t) in enumerate(tensors) if k != i)
            if writes and any(_partly(w, t) for t in others):
                self.seen = True
        return func(*args, **kwargs)


def _places(t: torch.Tensor) -> list[int]:
    """Where each element lies, in bytes from the storage's beginning."""
    at = torch.zeros(t.shape, dtype=torch.int64)
    for dim, (size, stride) in enumerate(zip(t.shape, t.stride(), strict=True)):
        shape = [1] * t.dim()
        shape[dim] = size
        at = at + (torch.arange(size) * stride).view(shape)
    return ((at + t.storage_offset()) * t.itemsize).flatten().tolist()


def _partly(w: torch.Tensor, t: torch.Tensor) -> bool:
    if w.untyped_storage()._cdata != t.untyped_storage()._cdata:
        return False
    ours, theirs = _places(w), _places(t)
    return not set(ours).isdisjoint(theirs) and (ours != theirs or w.shape != t.shape)
