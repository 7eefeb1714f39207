"""Tensors that lie in memory as others do, gaps and shared elements included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn


def is_strided(t: torch.Tensor) -> bool:
    """Whether its elements lie by strides: a nested tensor of this layout has none."""
    return t.layout == torch.strided and not t.is_nested


def reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to behind the last."""
    return 0 if 0 in shape else sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1


def overlaps_itself(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share memory: a stride that is within the reach of the smaller ones."""
    covered = 0
    for stride, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= covered:
            return True
        covered += (n - 1) * stride
    return False


def loses_writes(op: str, view: torch.Tensor, sources: Sequence[torch.Tensor]) -> bool:
    """Whether PyTorch's functionalization loses elements of `sources` where a view of them, made by `op`, is written to: it adds up
    what elements that share memory get, and makes zeros of what `unfold` leaves out."""
    gaps = op == "unfold" and any(view.numel() < t.numel() for t in sources)
    return gaps or overlaps_itself(view.shape, view.stride())


_copies_if_needed = ("contiguous", "reshape", "reshape_as", "flatten", "ravel", "to", "resolve_conj", "resolve_neg")


def loses_a_copy(
    steps: Iterable[tuple[str, torch.Tensor | None, Sequence[torch.Tensor], Sequence[torch.Tensor]]],
) -> bool:
    """Whether PyTorch's functionalization takes a copy for a view of its source, which is written to behind it. What a write leaves in
    the place of an input with gaps has none, so that `contiguous` and the like see nothing to copy. `steps`: of each op in turn its
    name ("" of an input), its result, its arguments, and what of them it writes to."""
    gaps, written, copied = set(), set(), set()
    for name, made, given, changed in steps:
        if copied.intersection(map(_memory, changed)):
            return True
        written.update(map(_memory, changed))
        if made is None:
            continue
        if not name and reach(made.shape, made.stride()) != made.numel():
            gaps.add(_memory(made))
        if name not in _copies_if_needed or not given or made.dtype != given[0].dtype:
            continue
        source, copy = _memory(given[0]), _memory(made)
        if copy != source and source in gaps & written:
            copied |= {source, copy}
    return False


def _memory(t: torch.Tensor) -> int:
    return t.untyped_storage()._cdata


def cloned(t: torch.Tensor, *, storage: bool = False) -> torch.Tensor:
    """A copy with the very strides, which clone() packs where elements share memory or have gaps between them. `storage`: at its
    place in a copy of all that its storage holds. Of a parameter a parameter, without gradients: forward may ask."""
    made = _cloned(t, storage)
    return nn.Parameter(made, requires_grad=False) if type(t) is nn.Parameter else made


def _cloned(t: torch.Tensor, storage: bool) -> torch.Tensor:
    if storage:
        return storage_of(t).clone().as_strided(t.shape, t.stride(), t.storage_offset())
    if not is_strided(t) or t.numel() == 0:
        return t.detach().clone()
    made = torch.empty_like(t)
    return made.copy_(t) if made.stride() == t.stride() else memory_below(t).clone().as_strided(t.shape, t.stride(), 0)


def in_storage(graph: dict) -> dict[str, int]:
    """The inputs that a graph addresses by their places in their storage, and where each begins there, in elements."""
    return (graph.get("meta", {}).get("memory") or {}).get("offsets", {})


def storage_of(t: torch.Tensor) -> torch.Tensor:
    """All that its storage holds, as elements of its type."""
    return t.detach().as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)


def memory_below(t: torch.Tensor) -> torch.Tensor:
    """All elements from the first to the last, with those between them that are not its own."""
    return t.detach().as_strided((reach(t.shape, t.stride()),), (1,), t.storage_offset())


def in_layout(tensor: torch.Tensor, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """The tensor itself where it has these strides, but for those of dims of one element; else a copy."""
    same = all(n == 1 or a == b for n, a, b in zip(shape, tensor.stride(), strides, strict=True))
    if same:
        return tensor
    return torch.empty_strided(shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


in_layout.passes_memory = True
