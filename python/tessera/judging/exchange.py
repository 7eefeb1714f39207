"""Tensors in files, by which processes that do not trust one another hand them over: raw bytes and a list of places, nothing
that is unpickled.

A place is {"offset", "shape", "strides", "dtype"}. What lies in a file is contiguous in logical row-major order, whatever
the strides; they say how the receiver lays it out.
"""

from __future__ import annotations

import math
import os
import stat

import torch

_ALIGN = 256
Kind = tuple[list[int], torch.dtype]


def places_of(kinds: list[Kind], begin: int = 0) -> tuple[list[dict], int]:
    """Where tensors of these shapes and types lie, one after the other, and where the last one ends."""
    places, end = [], begin
    for shape, dtype in kinds:
        places.append({"offset": end, "shape": list(shape), "dtype": str(dtype).removeprefix("torch.")})
        size = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
        end += (size + _ALIGN - 1) // _ALIGN * _ALIGN
    return places, end


def bytes_in(place: dict) -> int:
    return math.prod(place["shape"]) * torch.empty((), dtype=_dtype(place)).element_size()


def mapped(path: str, places: list[dict], size: int) -> list[torch.Tensor]:
    """Tensors that are the file's own bytes; it is made where there is none."""
    storage = torch.UntypedStorage.from_file(path, shared=True, nbytes=max(size, _ALIGN))
    whole = torch.empty(0, dtype=torch.uint8).set_(storage)
    return [_view(whole, p) for p in places]


def write(path: str, tensors: list[torch.Tensor]) -> list[dict]:
    """Errors: OSError where the disk is full."""
    places, size = places_of([(list(t.shape), t.dtype) for t in tensors])
    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, max(size, _ALIGN))  # a full disk is an error here, and a dead process later
    for place, target, t in zip(places, mapped(path, places, size), tensors, strict=True):
        target.copy_(t)
        place["strides"] = list(t.stride())
    return places


def read(path: str, places: list[dict]) -> list[torch.Tensor] | None:
    """Copies of what lies there now; None where the file does not hold them. Whoever wrote it may have put anything in its
    place, and may go on writing."""
    try:
        f = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(f).st_mode):
            return None
        out = []
        for place in places:
            size = bytes_in(place)
            raw = torch.empty(size, dtype=torch.uint8)
            if size and not _filled(f, memoryview(raw.numpy()), place["offset"]):
                return None
            out.append(raw.view(_dtype(place)).view(place["shape"]))
        return out
    finally:
        os.close(f)


def laid_out(t: torch.Tensor, place: dict, device: torch.device) -> torch.Tensor:
    """The tensor on a device, in memory of its own, with the strides of its place."""
    strides = place.get("strides")
    made = torch.empty_strided(t.shape, strides, dtype=t.dtype, device=device) if strides else None
    if made is None or (t.numel() and 0 in [s for n, s in zip(t.shape, strides, strict=True) if n > 1]):
        made = torch.empty(t.shape, dtype=t.dtype, device=device)
    return made.copy_(t)


def _filled(f: int, target: memoryview, offset: int) -> bool:
    done = 0
    while done < len(target):
        n = os.preadv(f, [target[done:]], offset + done)
        if n == 0:
            return False
        done += n
    return True


def _dtype(place: dict) -> torch.dtype:
    return getattr(torch, place["dtype"])


def _view(whole: torch.Tensor, place: dict) -> torch.Tensor:
    raw = whole[place["offset"] : place["offset"] + bytes_in(place)]
    return raw.view(_dtype(place)).view(place["shape"])
