"""Keeps the content of tensors that a call writes to: copied before the first op that writes to their memory, so that nothing is copied
where nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tessera.common.laid import is_strided


class Saving(TorchDispatchMode):
    """`by_memory`: tensors by their storages; `saved`: gets copies, by the identity of what was copied."""

    def __init__(self, by_memory: dict[int, list[torch.Tensor]], saved: dict[int, torch.Tensor]):
        super().__init__()
        self._by_memory, self._saved = by_memory, saved

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for at in _written_by(func, args, kwargs):
            for tensor in self._by_memory.pop(at, ()):
                if id(tensor) not in self._saved:
                    self._saved[id(tensor)] = copied(tensor)
        return func(*args, **kwargs)


def _written_by(func, args: tuple, kwargs: dict) -> Iterator[int]:
    """The memory that an op writes to. Norms write to their running statistics, and the schemas of some do not say so."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return
    norm = schema.name.endswith(("batch_norm", "instance_norm"))
    if not schema.is_mutable and not norm:
        return
    for i, a in enumerate(schema.arguments):
        if (a.alias_info is not None and a.alias_info.is_write) or (norm and a.name.startswith("running_")):
            given = args[i] if i < len(args) else kwargs.get(a.name)
            for t in given if isinstance(given, (list, tuple)) else (given,):
                if isinstance(t, torch.Tensor) and (at := memory_of(t)) is not None:
                    yield at


def memory_of(t: torch.Tensor) -> int | None:
    return t.untyped_storage()._cdata if is_strided(t) and type(t) in _own_memory else None


def copied(t: torch.Tensor) -> torch.Tensor:
    try:
        return t.detach().clone()
    except torch.OutOfMemoryError:
        return t.detach().cpu()


_own_memory = (torch.Tensor, nn.Parameter, nn.Buffer)


def form_of(t: torch.Tensor) -> tuple | None:
    """Shape, strides and where it begins in its memory: what ops such as unsqueeze_ change of an object."""
    return (t.shape, t.stride(), t.storage_offset()) if is_strided(t) else None
