"""Whether a gradient or a tangent is recorded for a tensor in a transform by torch.func or forward-mode AD. An operator is called with
what such a tensor stands for: who asks there whether a gradient is wanted is told no."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

_functorch = torch._C._functorch
_level = _functorch.maybe_current_level


def transformed() -> bool:
    return _level() is not None or forward_ad._current_level >= 0


def differentiated(t: torch.Tensor) -> bool:
    """Whether a gradient or a tangent is recorded for it, in any of the transforms that it is part of."""
    while True:
        if torch.is_grad_enabled() and t.requires_grad:
            return True
        if forward_ad._current_level >= 0 and forward_ad.unpack_dual(t).tangent is not None:
            return True
        if not _functorch.is_functorch_wrapped_tensor(t):
            return False
        t = _functorch.get_unwrapped(t)
