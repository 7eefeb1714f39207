"""Where a module holds a tensor, by the name that state_dict has, or would have, for it."""

from __future__ import annotations

import torch
from torch import nn


def owner_of(root: nn.Module, name: str) -> tuple[nn.Module, dict, str] | None:
    """The module, its dictionary and the key there; None where no tensor is held under this name."""
    path, _, key = name.rpartition(".")
    try:
        module = root.get_submodule(path)
    except AttributeError:
        return None
    for owner in (module._parameters, module._buffers, module.__dict__):
        if isinstance(owner.get(key), torch.Tensor):
            return module, owner, key
    return None
