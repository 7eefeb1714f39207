"""Facts about the content of small buffers and constants that rewrites rely on and the composed module guards.

    {"scalar": 0.5}                                               all elements are equal
    {"lower_triangular": true, "diagonal": 0}                     1 where column <= row + diagonal, else 0
    {"upper_triangular": true, "diagonal": 1}                     1 where column >= row + diagonal, else 0
    {"additive_lower_triangular": true, "diagonal": 0, "masked": -inf}   0 where column <= row + diagonal, else `masked`
    {"band": true, "lower": -255, "upper": 0}                     1 where lower <= column - row <= upper, else 0
    {"outside_band": true, "lower": -255, "upper": 0}             0 there, else 1
    {"additive_band": true, "lower": -255, "upper": 0, "masked": -inf}   0 there, else `masked`
    {"halves_equal": true}                                        of floating tensors: the last dim holds one half twice
    {"min": 0, "max": 511}                                        of integer tensors

Triangles and bands are over the last two dims, the same along the dims before them; a band is no triangle: keys before
it and after it are cut. `masked` is a float, or "-inf".
"""

from __future__ import annotations

import math

import torch

from tessera.common.precision import readable

# Elements of a tensor whose content is looked at: masks of 16384 x 16384, on a GPU of 32768 x 32768. The positions that a
# module subtracts to get such a mask are as many, in 64 bits.
LARGEST, LARGEST_ON_GPU = 1 << 28, 1 << 30
SAMPLED_FROM = 1 << 24  # elements: of more, weights most often, a sample says first whether it may be a mask

# Facts that say all of a tensor's content but its numbers.
MASKS = ("lower_triangular", "upper_triangular", "additive_lower_triangular", "band", "outside_band", "additive_band")


def mask_of(facts: dict, rows: int, columns: int, device: torch.device) -> torch.Tensor | None:
    """What the facts say of the last two dims, in fp32 so that every type can take it; nothing where they say no mask."""
    kind = next((k for k in MASKS if facts.get(k)), None)
    if kind is None:
        return None
    kept = torch.ones(rows, columns, device=device)
    if kind == "upper_triangular":
        kept = kept.triu(facts["diagonal"])
    elif kind.endswith("band"):
        kept = kept.triu(facts["lower"]).tril(facts["upper"])
    else:
        kept = kept.tril(facts["diagonal"])
    if not kind.startswith("additive"):
        return 1 - kept if kind == "outside_band" else kept
    return torch.zeros_like(kept).masked_fill(kept == 0, float(facts["masked"]))


def too_large(tensor: torch.Tensor) -> bool:
    """Whether its content is not looked at."""
    return tensor.numel() > (LARGEST_ON_GPU if tensor.device.type == "cuda" else LARGEST)


def facts_of(tensor: torch.Tensor) -> dict:
    t = tensor.detach()
    if t.numel() == 0 or too_large(t) or t.is_complex() or t.layout != torch.strided:
        return {}
    t = readable(t)
    if t.numel() > SAMPLED_FROM and len(t.flatten()[:: t.numel() // 4096].unique()) > 2:
        return {}
    facts = {}
    first = t.flatten()[0]
    if bool((t == first).all()):
        facts["scalar"] = _number(first)
    elif t.dim() >= 2:
        matrices = t.flatten(0, -3) if t.dim() > 2 else t[None]
        if matrices.shape[0] == 1 or bool((matrices == matrices[:1]).all()):
            facts.update(_triangle(matrices[0]))
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
        for kind, kept in (("band", t != 0), ("outside_band", t == 0)):
            if (band := _band(kept)) is not None:
                return {kind: True, **band}
    elif high == 0 and low < 0:
        kept = _diagonal(t == 0)
        if kept is not None:
            return {"additive_lower_triangular": True, "diagonal": kept, "masked": _number(low)}
        band = _band(t == 0)
        if band is not None:
            return {"additive_band": True, **band, "masked": _number(low)}
    return {}


def _two_values(t: torch.Tensor) -> tuple:
    """The smaller and the larger one of a tensor whose elements are not all equal; (None, None) where it has more."""
    if t.dtype == torch.bool:
        return False, True
    low, high = t.min(), t.max()
    return (low, high) if bool(((t == low) | (t == high)).all()) else (None, None)


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


def _band(kept: torch.Tensor) -> dict | None:
    """The distances column - row between which `kept` is true, and nowhere else."""
    rows, columns = kept.shape
    row = torch.arange(rows, device=kept.device)
    some, bits = kept.any(1), kept.to(torch.uint8)
    first, last = bits.argmax(1), columns - 1 - bits.flip(1).argmax(1)
    begins, ends = (first - row)[some & (first > 0)], (last - row)[some & (last < columns - 1)]
    if not begins.numel() or not ends.numel():
        return None
    lower, upper = int(begins[0]), int(ends[0])
    whole = torch.ones_like(kept, dtype=torch.bool).triu(lower).tril(upper)
    return {"lower": lower, "upper": upper} if torch.equal(kept, whole) else None
