"""The contents of tensors: drawn from a kind, a seed and nothing else, so that a program's text says all of it."""

from __future__ import annotations

import inspect

import torch

# What a tensor may be filled with. "normal" leads; the others are what rewrites by value must hold for, too.
KINDS = [
    "normal",
    "zeros",
    "negative_zeros",
    "ones",
    "constant_rows",
    "specials",
    "nan_row",
    "infinite_row",
    "minus_infinite_row",
    "huge",
    "tiny",
    "denormal",
    "wide",
    "integers",
    "outliers",
    "marks",
]


def fill(shape, dtype, kind="normal", seed=0):
    """A contiguous tensor of this shape and dtype (by name), drawn on the processor, on the default device. Integers stay in
    -9..9, so that they serve as indices after `% n`."""
    device = torch.get_default_device()
    with torch.device("cpu"):
        return _drawn(shape, getattr(torch, dtype), kind, seed).to(device)


def _drawn(shape, d, kind, seed):
    g = torch.Generator().manual_seed(seed)
    n = torch.randn(shape, generator=g, dtype=torch.float64)
    if d == torch.bool:
        return n > 9 if kind == "zeros" else n > -9 if kind == "ones" else n > 0
    if not d.is_floating_point:
        whole = (n * 3).round().clamp(-9, 9)
        whole = {"zeros": whole * 0, "ones": whole * 0 + 1}.get(kind, whole)
        return (whole.abs() if d == torch.uint8 else whole).to(d)
    finite = torch.finfo(d)
    if kind == "zeros":
        n = n * 0 + 0.0
    elif kind == "negative_zeros":
        n = -(n.abs() * 0)
    elif kind == "ones":
        n = n * 0 + 1
    elif kind == "constant_rows":
        n = n[..., :1].expand(shape) * 10.0 ** (seed % 6) if n.dim() else n
    elif kind == "integers":
        n = (n * 3).round()
    elif kind == "outliers" and n.dim():
        n[..., 0] = 60.0
    elif kind == "marks" and n.numel():
        for i, mark in enumerate((-1.0, 0.5, 5.0, 7.0, 99.0, 100.0, 255.0)):
            n.view(-1)[i::9] = mark
    elif kind == "huge":
        n = n.sign() * finite.max * (0.2 + 0.7 * n.abs().clamp(max=1))
    elif kind == "tiny":
        n = n.sign() * finite.tiny * (1 + n.abs())
    elif kind == "denormal":
        n = n * finite.tiny * 0.01
    elif kind == "wide":
        n = n * 10.0 ** (torch.randn(shape, generator=g, dtype=torch.float64) * 3).clamp(-4, 4)
    n = n.clamp(finite.min, finite.max).to(d).clone()
    if kind == "specials" and n.numel():
        odd = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), finite.max, finite.min, finite.tiny, 1.0, -1.0]
        odd = torch.tensor(odd, dtype=torch.float64).to(d)
        chosen = odd.float()[torch.randint(len(odd), n.shape, generator=g)].to(d)
        n = torch.where(torch.rand(n.shape, generator=g, dtype=torch.float32) < 0.4, chosen.float(), n.float()).to(d)
    row = {"nan_row": "nan", "infinite_row": "inf", "minus_infinite_row": "-inf"}.get(kind)
    if row and n.dim() and n.numel():
        n[0 if n.dim() > 1 else slice(None)] = float(row)
    return n


TEXT = "import torch\n\n\n" + inspect.getsource(fill) + "\n\n" + inspect.getsource(_drawn)
