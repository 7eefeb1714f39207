"""Fourier transforms on tensors whose last dim is (real, imaginary part), as operators that no compiler looks into.

The graph has no complex element types (`tracing/complex_ops.py`): a transform takes and gives what `view_as_real` would. Dims
count those of the complex tensor, from 0; `normalization` is torch's own number (0: none, 1: by the square root of the size,
2: by the size). Results are contiguous: how torch's transforms lay theirs depends on the library that makes them, and its rule
for fake tensors says otherwise, so that code compiled by that rule reads other elements.
"""

from __future__ import annotations

import torch

_aten = torch.ops.aten


def as_parts(t: torch.Tensor) -> torch.Tensor:
    """What the graph has for a tensor of the module: of a complex one the parts, which share its memory and its version."""
    return torch.view_as_real(t.detach()) if t.is_complex() else t


def _complex(x: torch.Tensor) -> torch.Tensor:
    """The complex tensor that x is the parts of; a copy of it where memory does not hold them in pairs."""
    pairs = x.stride(-1) == 1 and x.storage_offset() % 2 == 0 and all(s % 2 == 0 for s in x.stride()[:-1])
    return torch.view_as_complex(x if pairs else x.clone(memory_format=torch.contiguous_format))


def _c2c(x: torch.Tensor, dim: list[int], normalization: int, forward: bool) -> torch.Tensor:
    return torch.view_as_real(_aten._fft_c2c.default(_complex(x), dim, normalization, forward)).contiguous()


def _r2c(x: torch.Tensor, dim: list[int], normalization: int, onesided: bool) -> torch.Tensor:
    return torch.view_as_real(_aten._fft_r2c.default(x, dim, normalization, onesided)).contiguous()


def _c2r(x: torch.Tensor, dim: list[int], normalization: int, last_dim_size: int) -> torch.Tensor:
    return _aten._fft_c2r.default(_complex(x), dim, normalization, last_dim_size).contiguous()


def _operator(name: str, schema: str, function):
    torch.library.define(f"tessera::{name}", schema)
    torch.library.impl(f"tessera::{name}", "CompositeExplicitAutograd", function)
    torch.library.register_fake(f"tessera::{name}", function)
    return getattr(torch.ops.tessera, name).default


fft_c2c = _operator("fft_c2c", "(Tensor x, int[] dim, int normalization, bool forward) -> Tensor", _c2c)
fft_r2c = _operator("fft_r2c", "(Tensor x, int[] dim, int normalization, bool onesided) -> Tensor", _r2c)
fft_c2r = _operator("fft_c2r", "(Tensor x, int[] dim, int normalization, int last_dim_size) -> Tensor", _c2r)
