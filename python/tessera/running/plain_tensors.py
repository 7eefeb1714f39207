"""Whether a tensor is what kernels take it for: elements in memory, by strides, as they are.

torch's own word for what a tensor is are its dispatch keys: those of a sparse, nested, quantized or lazily negated one, of one
that torch.func wraps or that stands for zeros are others than those of a plain tensor on the same device.
"""

from __future__ import annotations

import functools

import torch
from torch.utils._python_dispatch import _disable_current_modes


@functools.cache
def plain_keys(device: torch.device) -> tuple[int, int]:
    """Of tensors that were made outside of inference mode, and in it."""
    with _disable_current_modes(), torch.inference_mode(False):
        outside = torch.empty(0, device=device)
        with torch.inference_mode():
            return keys_of(outside), keys_of(torch.empty(0, device=device))


def keys_of(t: torch.Tensor) -> int:
    return torch._C._dispatch_keys(t).raw_repr()


def is_plain(t: torch.Tensor) -> bool:
    return keys_of(t) in plain_keys(t.device)


def version_of(t: torch.Tensor) -> int:
    """The in-place counter; -1 for inference tensors, which have none."""
    return -1 if t.is_inference() else t._version


def kind_of(t: torch.Tensor) -> str:
    """For people."""
    if t.is_nested:
        return "nested"
    if t.layout != torch.strided:
        return f"of the layout {t.layout}"
    lazily = [name for name, asked in (("conjugated", t.is_conj()), ("negated", t.is_neg())) if asked]
    return f"lazily {' and '.join(lazily)}" if lazily else f"no plain tensor ({torch._C._dispatch_keys(t)})"
