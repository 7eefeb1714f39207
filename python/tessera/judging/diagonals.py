"""Wrong elements that lie along a diagonal: masks of attention, triangles, bands."""

from __future__ import annotations

import torch

_NARROW = 4  # diagonals side by side that are called one
_FULL = 0.75  # of the elements between the outer diagonals that are wrong: others may be right by chance


def along(bad: torch.Tensor) -> tuple[float, str, str] | None:
    """How full the part between the outermost diagonals of wrong elements is, what it is called ("a diagonal", "a triangle",
    "a band"), and its bounds, of the last two dims (the dims before them together); None where it is not nearly full, or is
    everything."""
    if bad.dim() < 2 or min(bad.shape[-2:]) < 2 * _NARROW:
        return None
    rows, columns = bad.shape[-2:]
    some = bad.reshape(-1, rows, columns).any(dim=0)
    hit = some.any(dim=1)
    row = torch.arange(rows, device=bad.device)[hit]
    marks = some[hit].to(torch.int8)
    low = int((marks.argmax(dim=1) - row).min())
    high = int((columns - 1 - marks.flip(1).argmax(dim=1) - row).max())
    if low == 1 - rows and high == columns - 1:
        return None
    every = torch.arange(rows, device=bad.device)
    within = (every + high).clamp(-1, columns - 1) - (every + low).clamp(0, columns) + 1
    full = int(bad.sum()) / (int(within.clamp(min=0).sum()) * (bad.numel() // (rows * columns)))
    if full < _FULL:
        return None
    i, j = bad.dim() - 2, bad.dim() - 1
    if low == high:
        return full, "a diagonal", f"where the index of dim {j} is that of dim {i}{_plus(low)}"
    bounds = f"where the index of dim {j} minus that of dim {i} is"
    if high - low < _NARROW:
        return full, "a diagonal", f"{bounds} {low} to {high}"
    if high == columns - 1:
        return full, "a triangle", f"{bounds} {low} or more"
    if low == 1 - rows:
        return full, "a triangle", f"{bounds} {high} or less"
    return full, "a band", f"{bounds} {low} to {high}"


def _plus(n: int) -> str:
    return "" if n == 0 else f" {'+' if n > 0 else '-'} {abs(n)}"
