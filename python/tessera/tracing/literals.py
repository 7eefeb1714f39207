"""Which tensors of an exported program forward makes of numbers in its own text: `torch.tensor(64.0)`.

Export gives them the same names as tensors that forward finds in a list, a global or a closure. Those are older than
the export, and whoever holds them may write to them; a literal is new in each call.
"""

from __future__ import annotations

import gc
from collections.abc import Container

import torch
from torch.export import ExportedProgram

_lifted = "lifted_tensor_"  # torch.export's name of tensors that are no attribute of a module


def storages_alive() -> dict[int, torch.UntypedStorage]:
    """The storages of all tensors that Python holds, by identity: about 0.1 s in a process with a language model. While they are
    held, no other storage gets the identity of one of them."""
    found = {}
    for held in gc.get_objects():
        if issubclass(type(held), torch.Tensor):
            storage = _storage(held)
            if storage is not None:
                found[storage._cdata] = storage
    return found


def literals(exported: ExportedProgram, alive: Container[int]) -> dict[str, torch.Tensor]:
    """By the target of their input spec, given the storages that were alive before the export."""
    lifted = {at: t for at, t in exported.constants.items() if at.startswith(_lifted) and isinstance(t, torch.Tensor)}
    return {at: t for at, t in lifted.items() if _identity(t) not in alive}


def _identity(tensor: torch.Tensor) -> int | None:
    storage = _storage(tensor)
    return storage._cdata if storage is not None else None


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage()
    except Exception:  # noqa: BLE001 - any tensor of the process: sparse ones, lazy parameters, others' subclasses
        return None
