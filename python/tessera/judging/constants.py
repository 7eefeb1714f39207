"""Whether a result is off as by a wrong constant: found - expected is a multiple of what was expected, by a factor near 1, the
same or one a row; or a multiple of an input, or of a value of the meaning.

A fit must leave a tenth at most of what is off. Roundings do not lie along any such line, so a fit is no chance."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from tessera.judging.as_if import name_of
from tessera.judging.problem import Problem

_LEFT = 0.1  # of the RMS difference, which a fit may leave
_NEAR = 0.05  # a factor's distance from 1, beyond which it is more than a constant in the last digits
_FEWEST = 8  # elements of a fit
_SHORTEST = 4  # elements of a row
_FLOATING = ("float32", "float64", "bfloat16", "float16")
_LARGEST = 1 << 22  # elements of all tensors: beyond it the values of the meaning are not computed


Named = tuple[str, torch.Tensor]


@dataclass
class Fit:
    left: float  # of the RMS of what is off
    relation: str
    about: str


def best(fits: Iterable[Fit | None]) -> tuple[str, str]:
    """The relation of the first one that fits, unless a later one leaves half of what it leaves, or less."""
    taken = Fit(1.0, "", "")
    for fit in fits:
        if fit and (not taken.relation or fit.left < 0.5 * taken.left):
            taken = fit
    return taken.relation, taken.about


def _rms(t: torch.Tensor) -> float:
    return float(t.square().mean().sqrt())


def _many(rows: torch.Tensor) -> bool:
    """Whether several elements of a row weigh in a fit: one alone is a multiple of anything."""
    squares = rows.square()
    several = squares.sum(-1).square() / squares.square().sum(-1).clamp_min(1e-300)
    return float(several.median()) >= 3


def _multiple(off: torch.Tensor, of: torch.Tensor) -> tuple[float, float] | None:
    """By which factor `off` is a multiple of `of`, and what that leaves; None where it is none, or where `of` says nothing: few
    elements, or equal ones."""
    if len(off) < _FEWEST or not bool(of.isfinite().all()) or float(of.std()) <= 1e-3 * _rms(of):
        return None
    if not _many(of.unsqueeze(0)):
        return None
    factor = float((off * of).sum() / of.square().sum())
    left = _rms(off - factor * of) / (_rms(off) or 1.0)
    return (factor, left) if left <= _LEFT else None


def nearly(found: torch.Tensor, wanted: torch.Tensor, bad: torch.Tensor) -> Iterator[Fit]:
    """Whether what was found is what was expected by a factor near 1, the same or one a row."""
    usable = bad & found.isfinite() & wanted.isfinite()
    f, w = found[usable], wanted[usable]
    fit = _multiple(f - w, w)
    if fit and abs(fit[0]) <= _NEAR:
        yield Fit(fit[1], "nearly_scaled", f"what was found there is 1 {_signed(fit[0])} times what was expected")
    for dim in reversed(range(found.dim())):
        if found.dim() > 1 and found.shape[dim] >= _SHORTEST and (rows := _rows(found, wanted, bad, dim)):
            yield rows


def _rows(found: torch.Tensor, wanted: torch.Tensor, bad: torch.Tensor, dim: int) -> Fit | None:
    f, w, touched = (t.movedim(dim, -1).flatten(0, -2) for t in (found, wanted, bad))
    of = touched.any(-1)
    f, w = f[of], w[of]
    if len(f) < 2 or not bool(f.isfinite().all() and w.isfinite().all()) or not _many(w):
        return None
    off = f - w
    factor = (off * w).sum(-1, keepdim=True) / w.square().sum(-1, keepdim=True).clamp_min(1e-300)
    rest = off - factor * w
    each = rest.square().sum(-1) / off.square().sum(-1).clamp_min(1e-300)
    left = _rms(rest) / (_rms(off) or 1.0)
    if left > _LEFT or float(each.median()) > _LEFT**2 or float(factor.abs().median()) > _NEAR:
        return None
    low, high = float(factor.min()), float(factor.max())
    row = "row" if dim == found.dim() - 1 else f"line along dim {dim}"
    side = ", all below 1" if high < 0 else ", all above 1" if low > 0 else ""
    about = f"each wrong {row} is what was expected by a factor near 1: 1 {_signed(low)} to 1 {_signed(high)}{side}"
    return Fit(left, "nearly_scaled_rows", about)


def _signed(number: float) -> str:
    return f"{'-' if number < 0 else '+'} {abs(number):.4g}"


def relation_of(
    problem: Problem, inputs: list[torch.Tensor], found: torch.Tensor, expected: torch.Tensor, bad: torch.Tensor
) -> tuple[str, str]:
    """What is off, against the inputs and the values of the meaning; two empty texts where nothing fits."""
    out, wanted = found.double(), expected.double()
    bad = bad & out.isfinite() & wanted.isfinite()
    named = list(_shaped(inputs, [name_of(problem, i) for i in range(len(inputs))], out.shape))
    return best(_fits(named, _values(problem, inputs, out), out, wanted, bad))


def _fits(
    inputs: list[Named], values: Iterable[Named], out: torch.Tensor, wanted: torch.Tensor, bad: torch.Tensor
) -> Iterator[Fit]:
    off = (out - wanted)[bad]
    for name, t in itertools.chain(inputs, values):
        if fit := _multiple(off, t[bad].double()):
            factor, left = fit
            about = f"a constant is wrong: found - expected is {factor:.4g} x {name}"
            yield Fit(left, "wrong_constant", about + _SPECIAL.get(round(factor, 3), ""))
    for name, t in inputs:
        for fit in nearly(out - t.double(), wanted - t.double(), bad):
            yield Fit(fit.left, fit.relation, f"{fit.about}, {name} taken off both")


_SPECIAL = {
    -1.0: ", as if it were left out",
    1.0: ", as if it were added once more",
    -2.0: ", as if its sign were wrong",
}


def _shaped(tensors: list[torch.Tensor], names: list[str], shape: torch.Size) -> Iterator[Named]:
    """Those that have the result's shape, or are broadcast to it."""
    for t, name in zip(tensors, names, strict=True):
        if not t.is_floating_point() or t.numel() < 2:
            continue
        if t.numel() == shape.numel():
            yield name, t.reshape(shape)
        elif t.dim() <= len(shape) and all(
            n in (1, m) for n, m in zip(reversed(t.shape), reversed(shape), strict=False)
        ):
            yield name, t.expand(shape)


def _values(problem: Problem, inputs: list[torch.Tensor], out: torch.Tensor) -> Iterator[Named]:
    """What the meaning computes on its way, in fp64, under the names of the graph."""
    if sum(t.numel() for t in inputs) + out.numel() > _LARGEST:
        return
    ends = {v["name"] for v in problem.outputs}
    shapes = {v["name"]: v["shape"] for v in problem.executor_graph["values"] if v["dtype"] in _FLOATING}
    made = [name for n in problem.nodes for name in n["outputs"]]
    names = [name for name in made if name in shapes and name not in ends and len(shapes[name])]
    if names:
        values = problem.values(inputs, names)
        yield from _shaped(values, [f"%{name}" for name in names], out.shape)
