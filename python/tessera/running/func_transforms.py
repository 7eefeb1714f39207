"""Whether a call is being transformed: by torch.func (vmap, grad, jvp, functionalize), or by forward-mode AD, which no_grad does
not end. Inputs and parameters may then stand for others that have no memory, or carry tangents, and kernels know nothing of
either. An operator is called with what such a tensor stands for: who asks there whether a gradient is wanted is told no."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from tessera.running.guards import Miss

_functorch = torch._C._functorch
_level = _functorch.maybe_current_level


def transformed() -> Miss | None:
    if _level() is not None:
        return Miss(
            "transform",
            "the call is part of a transform by torch.func (vmap, grad, jvp), which kernels have no rules for",
        )
    if forward_ad._current_level >= 0:
        return Miss("transform", "forward-mode AD is on, and kernels have no rules for tangents")
    return None


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
