"""Where a wrong output is wrong: its first wrong element, how the wrong ones lie, and what was found in their place."""

from __future__ import annotations

import math

import torch

from tessera.judging import constants, diagonals
from tessera.judging.deviation import Reference

_ALMOST = 0.995  # of the elements that a relation must explain
_TYPES = (torch.float16, torch.bfloat16, torch.float64, torch.float32)
_SAMPLE = 256
_FULLER = 0.2  # a part between diagonals says more than the box around it where it is so much fuller of wrong elements
_SHIFTS = (1, -1, 2, -2)
# Of so many errors, more than so far from as many up as down: one way. By chance it is less than one set in a thousand.
_FOR_A_SIGN, _ONE_WAY = 24, 0.7


def describe(value: dict, out: torch.Tensor, reference: Reference, allowed: dict, inputs: str) -> dict | None:
    """{"output", "shape", "index", "expected", "found", "count", "of", "lies", "box", "details", "relation",
    "relation_details", "inputs"}; None where no element by itself is wrong. `allowed`: the budget that was broken."""
    expected = reference.value.reshape(out.shape)
    bad = wrong_elements(out, expected, reference, allowed)
    count = int(bad.sum())
    if count == 0:
        return None
    first = [int(i) for i in bad.nonzero()[0]] if out.dim() else []
    lies, box, details = _how_they_lie(bad)
    relation, about = "other_type", _as_other_type(out, reference)
    if not about:
        relation, about = _relation(out, expected, bad)
    return {
        "output": value["name"],
        "shape": list(out.shape),
        "index": first,
        "expected": _text(expected[tuple(first)]),
        "found": _text(out[tuple(first)]),
        "count": count,
        "of": out.numel(),
        "lies": lies,
        "box": box,
        "details": details,
        "relation": relation,
        "relation_details": about,
        "depends": [],
        "inputs": inputs,
    }


def unwritten(value: dict, out: torch.Tensor, left: torch.Tensor, reference: Reference, inputs: str) -> dict:
    """The same of elements that nobody wrote: `left` marks them."""
    about = _as_other_type(out, reference)
    first = [int(i) for i in left.nonzero()[0]] if left.dim() else []
    lies, box, details = _how_they_lie(left)
    return {
        "output": value["name"],
        "shape": list(left.shape),
        "index": first,
        "expected": _text(reference.value.reshape(left.shape)[tuple(first)]),
        "found": "nothing",
        "count": int(left.sum()),
        "of": left.numel(),
        "lies": lies,
        "box": box,
        "details": details,
        "relation": "other_type" if about else "",
        "relation_details": about,
        "depends": [],
        "inputs": inputs,
    }


def written_beside(value: dict, out: torch.Tensor, reference: Reference, inputs: str) -> dict | None:
    """The same where bytes beside the output were written, and it holds elements of another type; None where not."""
    about = _as_other_type(out, reference)
    if not about:
        return None
    everything = torch.ones(out.shape, dtype=torch.bool)
    return unwritten(value, out, everything, reference, inputs) | {"found": _text(out.reshape(-1)[0])}


def _text(element: torch.Tensor) -> str:
    number = element.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def wrong_elements(out: torch.Tensor, expected: torch.Tensor, reference: Reference, allowed: dict) -> torch.Tensor:
    """Those over the largest error that is allowed; where none is, those that carry the RMS error."""
    if not expected.is_floating_point():
        return out != expected
    found = out.double()
    must = (
        reference.finite.reshape(out.shape) if reference.finite is not None else torch.ones_like(out, dtype=torch.bool)
    )
    bad = must & ~found.isfinite()
    if reference.non_finite is not None:
        bad |= reference.non_finite.reshape(out.shape) & found.isfinite()
    counted = must & found.isfinite()
    off = torch.where(counted, (found - expected).abs(), 0.0)
    size = torch.where(counted, expected.abs(), 0.0)
    some = max(1, int(counted.sum()))
    mean = float(size.sum()) / some or 1.0
    over = off > max(allowed["max"], 1e-12) * mean
    if not bool(over.any()) and not bool(bad.any()):
        over = off > 2 * allowed["rms"] * (float(size.square().sum()) / some) ** 0.5
    return bad | over


def _how_they_lie(bad: torch.Tensor) -> tuple[str, list[list[int]], str]:
    if bad.dim() == 0 or bad.numel() == 1:
        return "everywhere", [[0, 0]] * bad.dim(), "the one element"
    count, shape = int(bad.sum()), bad.shape
    touched = [
        bad.any(dim=tuple(d for d in range(bad.dim()) if d != k)) if bad.dim() > 1 else bad for k in range(bad.dim())
    ]
    places = [t.nonzero().flatten() for t in touched]
    box = [[int(p[0]), int(p[-1])] for p in places]
    if count == 1:
        return "one element", box, "a single element"
    # An element of a wrong region may be right by chance.
    inside = math.prod(last - first + 1 for first, last in box)
    diagonal = diagonals.along(bad)
    if diagonal and diagonal[0] > count / inside + _FULLER:
        return diagonal[1], box, diagonal[2]
    if count >= 0.5 * bad.numel() and inside == bad.numel():
        return "everywhere", box, "they lie everywhere"
    for k, place in enumerate(places):
        word = "columns" if k == bad.dim() - 1 else "rows"
        whole = all(len(p) == n for j, (p, n) in enumerate(zip(places, shape, strict=True)) if j != k)
        if not whole or len(place) == shape[k] or count < 0.5 * len(place) * (bad.numel() // shape[k]):
            continue
        where = f"indices {box[k][0]} to {box[k][1]} of dim {k} (of {shape[k]}), in all of the others"
        together = len(place) == box[k][1] - box[k][0] + 1
        if together and box[k][1] == shape[k] - 1:
            return f"tail of {word}", box, f"the last {len(place)} of dim {k} (of {shape[k]}), in all of the others"
        if together:
            return word, box, where
        step = (place[1:] - place[:-1]).unique()
        if len(step) == 1:
            return "every n-th", box, f"every {int(step)}-th of dim {k}, from {box[k][0]}"
        return word, box, f"{len(place)} of {shape[k]} of dim {k}, in all of the others"
    ranges = " x ".join(f"[{first}, {last}]" for first, last in box)
    if inside < bad.numel() and count >= 0.5 * inside:
        corner = all(last == n - 1 for (_, last), n in zip(box, shape, strict=True))
        return ("tail of block" if corner else "a block"), box, f"a block, {ranges}"
    return "scattered", box, f"they lie scattered within {ranges}"


def _relation(out: torch.Tensor, expected: torch.Tensor, bad: torch.Tensor) -> tuple[str, str]:
    """What the found values are of the expected ones."""
    if not out.is_floating_point():
        return "", ""
    found, wanted = out.double(), expected.double()
    f, w = found[bad], wanted[bad]
    usable = f.isfinite() & w.isfinite()
    if not bool(usable.any()):
        return "", ""
    scale = float(w[usable].abs().mean()) or 1.0
    for name, test in (("shifted", _as_shifted), ("transposed", _as_transposed)):
        if about := test(found, wanted, bad, scale):
            return name, about
    if float(usable.double().mean()) < _ALMOST:
        return "", ""
    for relation, about in (
        _as_number(f[usable], w[usable], scale),
        constants.best(constants.nearly(found, wanted, bad)),
        _as_rounded(f[usable], w[usable], out.dtype),
    ):
        if relation:
            return relation, about
    return _as_scaled_rows(found, wanted, bad)


def _as_number(f: torch.Tensor, w: torch.Tensor, scale: float) -> tuple[str, str]:
    if bool((f == 0).all()):
        return "zero", "what was found there is zero"
    if len(f) < 3:
        return "", ""
    factor = float((f * w).sum() / w.square().sum()) if float(w.square().sum()) else 0.0
    if factor and abs(factor - 1) > 0.02 and float(((f - factor * w).abs() < 1e-3 * scale).double().mean()) >= _ALMOST:
        return "scaled", f"what was found there is {factor:.6g} of what was expected"
    offset = float((f - w).mean())
    if abs(offset) > 0.02 * scale and float(((f - w - offset).abs() < 1e-3 * scale).double().mean()) >= _ALMOST:
        return "offset", f"what was found there is larger by {offset:.6g} than what was expected"
    if len(f) > 8 and bool((f == f[0]).all()):
        return "constant", f"what was found there is always {float(f[0]):.6g}"
    return "", ""


def _as_rounded(f: torch.Tensor, w: torch.Tensor, dtype: torch.dtype) -> tuple[str, str]:
    """Roundings go both ways about as often; what is cut goes one way, and has no digits left behind."""
    error = float((f - w).square().mean().sqrt()) / (float(w.square().mean().sqrt()) or 1.0)
    if len(f) < 3 or error >= 2**-6:
        return "", ""
    about = f"they are off by {error:.2g} of their size"
    ways = torch.sign((f - w) * w)
    one = float(ways.mean())
    if len(f) < _FOR_A_SIGN or abs(one) <= _ONE_WAY or _is_coarse(f, dtype):
        return "rounded", f"{about}: as if rounded to a coarser type"
    share = float((ways == math.copysign(1, one)).double().mean())
    return (
        "one_way",
        f"{about}, {share:.0%} of them towards {'larger' if one > 0 else 'smaller'} values: no rounding does so",
    )


def _is_coarse(f: torch.Tensor, dtype: torch.dtype) -> bool:
    narrower = [t for t in (torch.bfloat16, torch.float16, torch.float32) if t.itemsize < dtype.itemsize]
    return any(float((f.to(t).double() == f).double().mean()) >= _ALMOST for t in narrower)


def _as_scaled_rows(found: torch.Tensor, wanted: torch.Tensor, bad: torch.Tensor) -> tuple[str, str]:
    """Whether each wrong row is a multiple of what it must be, each another one."""
    if found.dim() < 2 or found.shape[-1] < 4:
        return "", ""
    of = bad.flatten(0, -2).any(-1) if found.dim() > 1 else bad
    f, w = found.flatten(0, -2)[of], wanted.flatten(0, -2)[of]
    if len(f) < 2 or not bool(f.isfinite().all() and w.isfinite().all()):
        return "", ""
    factor = (f * w).sum(-1, keepdim=True) / w.square().sum(-1, keepdim=True).clamp_min(1e-300)
    size = w.abs().mean(-1, keepdim=True)
    fits = ((f - factor * w).abs() < 1e-3 * size).double().mean()
    if float(fits) < _ALMOST or float((factor - 1).abs().median()) < 0.01:
        return "", ""
    low, high = float(factor.min()), float(factor.max())
    return "scaled_rows", f"each wrong row is a multiple of what was expected, by {low:.4g} to {high:.4g}"


def _agree(a: torch.Tensor, b: torch.Tensor, scale: float, tolerance: float = 1e-2) -> bool:
    """Whether two rows of numbers are the same, and no constants."""
    close = ((a - b).abs() <= tolerance * (b.abs() + 0.01 * scale)) | (a.isnan() & b.isnan())
    return a.numel() > 3 and float(close.double().mean()) >= _ALMOST and float(b.std()) > 1e-6


def _as_other_type(out: torch.Tensor, reference: Reference) -> str:
    """Whether the output's memory holds what was expected in another element type, as far as there is room for it."""
    if not out.is_floating_point() or not out.is_contiguous() or out.numel() < 8:
        return ""
    flat, wanted = out.reshape(-1), reference.value.reshape(-1).double()
    scale = float(wanted[wanted.isfinite()].abs().mean()) or 1.0
    for dtype in _TYPES:
        if dtype == out.dtype or (flat.numel() * flat.element_size()) % dtype.itemsize:
            continue
        read = flat.view(dtype).double()
        n = min(len(read), flat.numel())
        if _agree(read[:n], wanted[:n], scale):
            return f"the memory of the output holds {_short(dtype)}, the tensor is {_short(out.dtype)}"
    return ""


def _short(dtype: torch.dtype) -> str:
    return str(dtype).split(".")[1]


def _as_shifted(found: torch.Tensor, wanted: torch.Tensor, bad: torch.Tensor, scale: float) -> str:
    if float(bad.double().mean()) < 0.2:
        return ""
    for k in range(found.dim()):
        for by in dict.fromkeys([*_SHIFTS, *_shifts_of_the_middle(found, wanted, k, scale)]):
            n = found.shape[k] - abs(by)
            if n < max(2, found.shape[k] / 4):
                continue
            here, there = found.narrow(k, max(0, by), n), wanted.narrow(k, max(0, -by), n)
            if _agree(here.reshape(-1), there.reshape(-1), scale):
                return f"what was found is what was expected, shifted by {by} along dim {k}"
    return ""


def _shifts_of_the_middle(found: torch.Tensor, wanted: torch.Tensor, k: int, scale: float) -> list[int]:
    """How far from where they were expected the values lie that were found at the middle index of dim k, in a sample of the
    other dims."""
    here, there = (x.movedim(k, 0).flatten(1) if x.dim() > 1 else x[:, None] for x in (found, wanted))
    if here.shape[1] < 8:
        return []
    chosen = torch.linspace(0, here.shape[1] - 1, min(_SAMPLE, here.shape[1]), device=here.device).long()
    middle = here.shape[0] // 2
    one, all_of_them = here[middle, chosen], there[:, chosen]
    same = ((all_of_them - one).abs() <= 1e-2 * (one.abs() + 0.01 * scale)).double().mean(dim=1) >= _ALMOST
    at = same.nonzero().flatten()
    if len(at) > 2:  # the values do not tell indices apart
        return []
    return [middle - int(j) for j in at if int(j) != middle]


def _as_transposed(found: torch.Tensor, wanted: torch.Tensor, bad: torch.Tensor, scale: float) -> str:
    if found.dim() < 2:
        return ""
    rows, columns = found.shape[-2:]
    turned = wanted.transpose(-1, -2).reshape(*found.shape[:-2], rows, columns)
    if _agree(found.reshape(-1), turned.reshape(-1), scale):
        return "what was found is the transpose of what was expected, in the same memory"
    return ""
