"""Whether a call is being transformed: by torch.func (vmap, grad, jvp, functionalize), or by forward-mode AD, which no_grad does
not end. Inputs and parameters may then stand for others that have no memory, or carry tangents, and kernels know nothing of
either."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from tessera.running.guards import Miss

_level = torch._C._functorch.maybe_current_level


def transformed() -> Miss | None:
    if _level() is not None:
        return Miss(
            "transform",
            "the call is part of a transform by torch.func (vmap, grad, jvp), which kernels have no rules for",
        )
    if forward_ad._current_level >= 0:
        return Miss("transform", "forward-mode AD is on, and kernels have no rules for tangents")
    return None
