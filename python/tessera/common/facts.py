"""Facts about the content of small buffers and constants that rewrites rely on and the composed module guards.

    {"scalar": 0.5}                                               all elements are equal
    {"lower_triangular": true, "diagonal": 0}                     1 where column <= row + diagonal, else 0
    {"upper_triangular": true, "diagonal": 1}                     1 where column >= row + diagonal, else 0
    {"additive_lower_triangular": true, "diagonal": 0, "masked": -inf}   0 where column <= row + diagonal, else `masked`
    {"halves_equal": true}                                        of floating tensors: the last dim holds one half twice
    {"min": 0, "max": 511}                                        of integer tensors

The triangles are over the last two dims; dims before them are 1. `masked` is a float, or "-inf".
"""

from __future__ import annotations

import math

import torch

from tessera.common.precision import readable

# Elements: a mask of 4096 x 4096, and one of truth values, which takes a byte each, of 16384 x 16384.
LARGEST, LARGEST_OF_BOOL = 1 << 24, 1 << 28


def too_large(tensor: torch.Tensor) -> bool:
    """Whether its content is not looked at."""
    return tensor.numel() > (LARGEST_OF_BOOL if tensor.dtype == torch.bool else LARGEST)


def facts_of(tensor: torch.Tensor) -> dict:
    t = tensor.detach()
    if t.numel() == 0 or too_large(t) or t.is_complex() or t.layout != torch.strided:
        return {}
    t = readable(t)
    facts = {}
    first = t.flatten()[0]
    if bool((t == first).all()):
        facts["scalar"] = _number(first)
    elif t.dim() >= 2 and t.numel() == t.shape[-1] * t.shape[-2]:
        facts.update(_triangle(t.reshape(t.shape[-2:])))
    if "scalar" not in facts and _halves_equal(t):
        facts["halves_equal"] = True
    if not t.is_floating_point() and t.dtype != torch.bool:
        facts.update({"min": int(t.min()), "max": int(t.max())})
    return facts


def _number(x: torch.Tensor):
    value = x.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _halves_equal(t: torch.Tensor) -> bool:
    """As of rotary embedding's tables, made by torch.cat((angles, angles), -1)."""
    return t.is_floating_point() and t.dim() > 0 and t.shape[-1] % 2 == 0 and torch.equal(*t.chunk(2, dim=-1))


def _triangle(t: torch.Tensor) -> dict:
    low, high = _two_values(t)
    if low is None:
        return {}
    if high == 1 and low == 0:
        lower = _diagonal(t != 0)
        if lower is not None:
            return {"lower_triangular": True, "diagonal": lower}
        below = _diagonal(t == 0)  # 0 where column <= row + below
        if below is not None:
            return {"upper_triangular": True, "diagonal": below + 1}
    elif high == 0 and low < 0:
        kept = _diagonal(t == 0)
        if kept is not None:
            return {"additive_lower_triangular": True, "diagonal": kept, "masked": _number(low)}
    return {}


def _two_values(t: torch.Tensor) -> tuple:
    """The smaller and the larger one of a tensor whose elements are not all equal; (None, None) where it has more."""
    if t.dtype == torch.bool:
        return False, True
    values = torch.unique(t)
    return (values[0], values[1]) if values.numel() == 2 else (None, None)


def _diagonal(kept: torch.Tensor) -> int | None:
    """d when `kept` is true exactly where column <= row + d."""
    rows, columns = kept.shape
    counts = kept.sum(1)
    inner = ((counts > 0) & (counts < columns)).nonzero()
    if inner.numel():
        row = int(inner[0])
        d = int(counts[row]) - row - 1
    else:
        full = (counts == columns).nonzero()
        d = columns - 1 - (int(full[0]) if full.numel() else rows)
    return d if torch.equal(kept, torch.ones_like(kept, dtype=torch.bool).tril(d)) else None
