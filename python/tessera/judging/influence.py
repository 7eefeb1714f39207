"""On which elements of the inputs a wrong element depends, beside those that it must depend on.

Each part of an input (an index of a dim, with all of the others) is changed, and both the kernel and the pattern's meaning are
run again. Where the kernel's element moves and the meaning's does not, or the other way round, an index is wrong; where it
moves twice as far, a term counts twice. The first is asked with a large change, which few terms are too small for; the
second with a small one, since functions are straight lines only there."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tessera.judging.as_if import name_of
from tessera.judging.guarded import Guarded
from tessera.judging.problem import Dataset, Problem, dtype_of

_LARGEST = 1 << 16  # elements of all tensors: kernel and meaning are run some hundred times
_PARTS = 48  # of a dim
# A small change, relative; of narrower types, whose results are rounded more, 1/2.
_CHANGE = {torch.float64: 2.0**-6, torch.float32: 2.0**-6}
_OTHERWISE = 0.08  # a weight that differs from the others' by more is told


Range = tuple[int, int]  # the first index and the last


@dataclass
class _Part:
    """A box of an input, told by its range of `dim`, and how far it moves the element: the kernel's, and the meaning's;
    `far`: when it is changed by much."""

    tensor: int
    box: tuple[Range, ...]
    dim: int
    found: float = 0.0
    expected: float = 0.0
    far_found: float = 0.0
    far_expected: float = 0.0

    @property
    def first(self) -> int:
        return self.box[self.dim][0] if self.dim >= 0 else 0

    @property
    def last(self) -> int:
        return self.box[self.dim][1] if self.dim >= 0 else 0


def depends(problem: Problem, data: Dataset, runner, output: int, made: torch.Tensor) -> list[dict]:
    """{"tensor", "dim", "first", "last", "weight", "text"} of what a wrong element of an output, which is `made`, depends
    on otherwise than it must. `weight`: 0 for what it must depend on and does not, null for what it must not depend on, else
    times what it must be, all inputs' common factor taken off. Empty where the tensors are too large."""
    reference = data.references[output]
    if sum(t.numel() for t in data.tensors) > _LARGEST or reference.finite is not None or not made.is_floating_point():
        return []
    expected = reference.value.reshape(made.shape)
    off = (made.double() - expected).abs().nan_to_num(nan=0.0, posinf=0.0)
    wrong = off > 0.1 * off.max()
    alive = wrong & (expected.abs() > 1e-3 * expected.abs().mean())  # what a relu made 0 depends on nothing
    index = _in_the_middle(alive if bool(alive.any()) else wrong)
    inputs = [_copy(v, g) for v, g in zip(problem.inputs, data.inputs, strict=True)]
    probe = _Probe(problem, runner, inputs, output, index)
    if not probe.usable():
        return []
    # Elements that share their memory cannot be changed one by one.
    apart = [i for i, t in enumerate(inputs) if t.is_floating_point() and 0 not in t.stride()]
    said: list[dict] = []
    for i in apart:
        box = [_supported(probe, i, dim) for dim in range(inputs[i].dim())]
        for dim in range(len(box)):
            said += _of_a_dim(problem, probe, i, dim, box)
    whole = [_Part(i, tuple((0, n - 1) for n in inputs[i].shape), -1) for i in apart]
    return said or _of_whole_inputs(problem, probe, [probe.move(p) for p in whole])


def _in_the_middle(wrong: torch.Tensor) -> tuple[int, ...]:
    """The wrong element that lies nearest to the middle: at the edges masks and tails hide half of what is to be seen."""
    at = wrong.nonzero()
    middle = (torch.tensor(wrong.shape, device=at.device) - 1) / 2
    nearest = ((at - middle) / (middle + 0.5)).square().sum(-1).argmin()
    return tuple(int(i) for i in at[nearest])


def _copy(value: dict, given: Guarded) -> torch.Tensor:
    """In the same layout, between guards of its own."""
    made = Guarded(value["shape"], value["strides"], dtype_of(value), given.tensor.device)
    made.flat.copy_(given.flat)
    return made.tensor


class _Probe:
    def __init__(self, problem: Problem, runner, inputs: list[torch.Tensor], output: int, index: tuple[int, ...]):
        self.problem, self.inputs, self.output, self.index = problem, inputs, output, index
        self._results = [g.tensor for g in problem.new_outputs()]
        self._run = runner.prepare(inputs, self._results)
        self._sizes = [float(t.double().std()) or 1.0 if t.numel() > 1 else 1.0 for t in inputs]
        self._change = _CHANGE.get(self._results[output].dtype, 0.5)
        self.found, self.expected = self._both()
        size = abs(self.found) + abs(self.expected)
        self.noise = 40 * torch.finfo(self._results[output].dtype).eps * size + 1e-30

    def usable(self) -> bool:
        return all(abs(x) < float("inf") for x in (self.found, self.expected))

    def move(self, part: _Part) -> _Part:
        with self._changed(part, near=True):
            part.found, part.expected = self._moved()
        with self._changed(part, near=False):
            part.far_found, part.far_expected = self._moved()
        return part

    def needs(self, part: _Part) -> bool:
        """Whether the meaning depends on the part: fp64 does not move at all where it does not."""
        with self._changed(part, near=False):
            return self._meant() != self.expected

    @contextlib.contextmanager
    def _changed(self, part: _Part, near: bool):
        here = self.inputs[part.tensor]
        for dim, (first, last) in enumerate(part.box):
            here = here.narrow(dim, first, last - first + 1)
        kept = here.clone()
        if near:
            here.mul_(1 + self._change)
        else:
            here.add_(self._sizes[part.tensor])
        yield
        here.copy_(kept)

    def _moved(self) -> tuple[float, float]:
        found, expected = self._both()
        return found - self.found, expected - self.expected

    def _meant(self) -> float:
        return float(self.problem.run(self.inputs, torch.float64)[self.output][self.index])

    def _both(self) -> tuple[float, float]:
        results = self._run() or self._results
        return float(results[self.output][self.index]), self._meant()

    def foreign(self, p: _Part) -> bool:
        return p.far_expected == 0.0 and not abs(p.far_found) <= self.noise

    def missing(self, p: _Part) -> bool:
        return abs(p.far_found) <= self.noise / 40 and abs(p.far_expected) > 8 * self.noise

    def clear(self, p: _Part) -> bool:
        return min(abs(p.found), abs(p.expected)) > 8 * self.noise


def _pieces(extent: int) -> list[Range]:
    size = (extent + _PARTS - 1) // _PARTS
    return [(first, min(extent, first + size) - 1) for first in range(0, extent, size)]


def _supported(probe: _Probe, tensor: int, dim: int) -> Range:
    """The range of a dim that the meaning depends on; all of it where it depends on none."""
    whole = [(0, n - 1) for n in probe.inputs[tensor].shape]
    needed = []
    for piece in _pieces(probe.inputs[tensor].shape[dim]):
        if probe.needs(_Part(tensor, (*whole[:dim], piece, *whole[dim + 1 :]), dim)):
            needed.append(piece)
    return (needed[0][0], needed[-1][1]) if needed else whole[dim]


def _of_a_dim(problem: Problem, probe: _Probe, tensor: int, dim: int, box: list[Range]) -> list[dict]:
    """Within the box that the meaning depends on, element by element of the dim; beside it, with all of the other dims."""
    shape = probe.inputs[tensor].shape
    parts = []
    for piece in _pieces(shape[dim]):
        inside = box[dim][0] <= piece[0] and piece[1] <= box[dim][1]
        others = box if inside else [(0, n - 1) for n in shape]
        parts.append(probe.move(_Part(tensor, (*others[:dim], piece, *others[dim + 1 :]), dim)))
    said = []
    for p in _joined([p for p in parts if probe.missing(p)]):
        said.append(_said(problem, p, 0.0, "does not depend on {}, and must"))
    for p in _joined([p for p in parts if probe.foreign(p)]):
        said.append(_said(problem, p, None, "depends on {}, and must not"))
    if said:
        return said
    weights = {id(p): p.found / p.expected for p in parts if probe.clear(p)}
    if len(weights) < 4:
        return []
    usual = sorted(weights.values())[len(weights) // 2]
    odd = [p for p in parts if id(p) in weights and abs(weights[id(p)] / usual - 1) > _OTHERWISE]
    if len(odd) > len(weights) // 2:
        return []
    for p in _joined(odd, [q for q in parts if id(q) not in weights]):
        of = sorted(weights[id(q)] / usual for q in odd if p.first <= q.first <= p.last)
        weight = round(of[len(of) // 2], 2)
        said.append(_said(problem, p, weight, f"depends {weight:g} times as much on {{}} as on the others"))
    return said


def _joined(parts: list[_Part], unclear: Sequence[_Part] = ()) -> list[_Part]:
    """Neighbours as one, also over parts of which nothing is known; three at most."""
    between = {q.first: q.last for q in unclear}
    out: list[_Part] = []
    for p in parts:
        end = out[-1].last + 1 if out else p.first
        while end in between:
            end = between[end] + 1
        if out and end == p.first:
            box = out[-1].box
            out[-1] = _Part(p.tensor, (*box[: p.dim], (out[-1].first, p.last), *box[p.dim + 1 :]), p.dim)
        else:
            out.append(p)
    return out[:3]


def _of_whole_inputs(problem: Problem, probe: _Probe, parts: list[_Part]) -> list[dict]:
    """What inputs weigh beside each other, where each is read at the right places."""
    parts = [p for p in parts if probe.clear(p)]
    if not parts:
        return []
    weights = [p.found / p.expected for p in parts]
    if max(weights) - min(weights) <= _OTHERWISE * max(abs(w) for w in weights):
        if abs(weights[0] - 1) <= _OTHERWISE / 4:
            if abs(probe.found - probe.expected) <= _OTHERWISE * abs(probe.expected):
                return []  # too little to tell from what is rounded
            text = "depends on every input as it must: what is wrong is added, and depends on none of them"
            return [{"tensor": -1, "dim": -1, "first": 0, "last": 0, "weight": 1.0, "text": text}]
        text = f"depends on the right elements, {weights[0]:.3g} times as much as it must, on all inputs alike"
        return [{"tensor": -1, "dim": -1, "first": 0, "last": 0, "weight": round(weights[0], 3), "text": text}]
    text = "depends on the right elements of {}, {:.3g} times as much as it must"
    return [_said(problem, p, round(w, 3), text.format("{}", w)) for p, w in zip(parts, weights, strict=True)]


def _said(problem: Problem, p: _Part, weight: float | None, text: str) -> dict:
    where = name_of(problem, p.tensor)
    if p.dim >= 0:
        extent = problem.inputs[p.tensor]["shape"][p.dim]
        indices = f"index {p.first}" if p.first == p.last else f"indices {p.first} to {p.last}"
        where = f"{where} at {indices} of dim {p.dim} (of {extent})"
    return {
        "tensor": p.tensor,
        "dim": p.dim,
        "first": p.first,
        "last": p.last,
        "weight": weight,
        "text": text.format(where),
    }
