"""Parameters that lie one after the other in memory, so that kernels read several as one and nothing is packed.

The weight of a merged product is the concatenation of parameters along dim 0. `adopt` moves those parameters into one
allocation. What anybody writes into a parameter (by load_state_dict, through `.data`, in a replayed CUDA graph) is then what
the kernel reads, for there is no second copy. A parameter keeps its identity, shape, strides, values and a storage of its
own size; only `data_ptr()` changes. state_dict, safetensors, deepcopy and tied parameters work as before.

A parameter whose storage something else looks at (another tensor, another process, pinned memory) is left alone: moving it
would part the two. The memory is freed when the parameters and the tensor over them are gone.
"""

from __future__ import annotations

import threading
import weakref

import torch
from torch import nn
from torch.utils import dlpack

_lock = threading.RLock()
_wholes: list[weakref.ref] = []  # what `adopt` made, while somebody holds it


def _plain(t: torch.Tensor) -> bool:
    return (
        type(t) in (torch.Tensor, nn.Parameter)
        and t.layout == torch.strided
        and t.is_contiguous()
        and t.numel() > 0
        and not t.is_inference()
    )


_MARK = "_tessera_adopted"  # on a storage: the memory is in one of `_wholes`


def _alone(t: torch.Tensor) -> bool:
    """Whether nothing but the tensor looks at its memory: its storage has one user besides the object it is asked through, and is
    torch's (that of an array, which is not resizable, is not) or of `adopt`."""
    storage = t.untyped_storage()
    if t.device.type == "cpu" and (t.is_shared() or t.is_pinned()):
        return False
    ours = storage.resizable() or hasattr(storage, _MARK)
    return ours and torch._C._storage_Use_Count(storage._cdata) == 2


def _bytes(t: torch.Tensor) -> int:
    return t.numel() * t.itemsize


def _window(whole: torch.Tensor, offset: int, shape) -> torch.Tensor:
    """A contiguous tensor over the same memory, `offset` elements in; no view, which would keep `whole` itself alive."""
    return torch.empty(0, dtype=whole.dtype, device=whole.device).set_(
        whole.untyped_storage(), whole.storage_offset() + offset, shape
    )


def _around(address: int, device: torch.device, ignored: set[int] = frozenset()) -> torch.Tensor | None:
    """The living whole that holds this address; not one of these ids."""
    for ref in _wholes:
        whole = ref()
        if whole is None or id(whole) in ignored or whole.device != device:
            continue
        if 0 <= address - whole.data_ptr() < _bytes(whole):
            return whole
    return None


def span(parts: list[torch.Tensor]) -> torch.Tensor | None:
    """One tensor over parts that `adopt` put one after the other, else None. Its shape is theirs, concatenated along dim 0;
    it shares their memory."""
    first = parts[0]
    place = first.data_ptr()
    for t in parts:
        if not _plain(t) or t.data_ptr() != place or t.dtype != first.dtype or t.shape[1:] != first.shape[1:]:
            return None
        place += _bytes(t)
    with _lock, torch.no_grad():
        whole = _around(first.data_ptr(), first.device)
        if whole is None or whole.dtype != first.dtype or place > whole.data_ptr() + _bytes(whole):
            return None
        rows = sum(t.shape[0] for t in parts)
        if (first.data_ptr(), rows) == (whole.data_ptr(), whole.shape[0]):
            return whole
        offset = (first.data_ptr() - whole.data_ptr()) // whole.itemsize
        part = _window(whole, offset, (rows, *first.shape[1:]))
        _wholes.append(weakref.ref(part))
        return part


def adopt(parts: list[torch.Tensor], given_up: list[torch.Tensor] = ()) -> torch.Tensor | None:
    """Moves the parts into one allocation and gives the tensor over them; None where one of them may not be moved, or lies
    in another whole that is in use (but those `given_up`, which the caller is about to let go). Not while a CUDA graph is
    captured: the moves would be part of it."""
    first = parts[0]
    if first.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return None
    with _lock, torch.no_grad():
        if (there := span(parts)) is not None:
            return there
        _wholes[:] = [ref for ref in _wholes if ref() is not None]
        if not _may_move(parts, {id(t) for t in given_up}):
            return None
        whole = torch.cat([t.detach() for t in parts])
        begin, places = 0, []
        for t in parts:
            # A tensor with a storage of its own over this part of the memory, which it keeps alive: a view would show the
            # whole as its storage, and what saves models by their storages would refuse it.
            places.append(dlpack.from_dlpack(dlpack.to_dlpack(_window(whole, begin, t.shape))))
            setattr(places[-1].untyped_storage(), _MARK, True)
            begin += t.numel()
        for t, place in zip(parts, places, strict=True):
            t.data = place
        _wholes.append(weakref.ref(whole))
        return whole


def concatenated(parts: list[torch.Tensor], rooms: dict | None, key) -> torch.Tensor:
    """What stands for parts that may not be moved: their concatenation, in memory of its own or, where `rooms` is given, in what
    `rooms[key]` holds, so that its address stays."""
    if rooms is None:
        with torch.no_grad():
            return torch.cat(parts)
    with (
        torch.inference_mode(False),
        torch.no_grad(),
    ):  # a room that is made in inference mode could not be written outside
        rooms[key] = torch.cat(parts, out=rooms.get(key))
    return rooms[key]


def _may_move(parts: list[torch.Tensor], given_up: set[int]) -> bool:
    first = parts[0]
    alike = all(
        t.dtype == first.dtype and t.device == first.device and t.dim() and t.shape[1:] == first.shape[1:]
        for t in parts
    )
    distinct = len({t.data_ptr() for t in parts}) == len(parts)
    return (
        alike
        and distinct
        and all(map(_plain, parts))
        and all(_alone(t) and _around(t.data_ptr(), t.device, given_up) is None for t in parts)
    )
