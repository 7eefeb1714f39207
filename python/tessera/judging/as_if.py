"""What mistake a wrong result would come from: the pattern's meaning on inputs that are mistaken in one way, against what was
found. Two inputs exchanged, one transposed, left out, negated, rounded, or its first part taken for all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

from tessera.judging.deviation import Reference, reference_errors
from tessera.judging.problem import Problem

_LARGEST = 1 << 22  # elements of all tensors: beyond it the meaning is not computed so often
_SAME = 4.0  # times the budget: a mistaken input and an ordinary error together

Tensors = list[torch.Tensor]


def relation_of(problem: Problem, inputs: Tensors, found: torch.Tensor, output: int, allowed: dict) -> tuple[str, str]:
    """The word of the mistake and a sentence; two empty texts where none of them fits. `output`: which one is `found`."""
    if sum(t.numel() for t in inputs) + found.numel() > _LARGEST or not found.is_floating_point():
        return "", ""
    right = problem.run(inputs, torch.float64)[output]
    for word, about, mistaken in _mistakes(problem, inputs):
        made = problem.run(mistaken, torch.float64)[output]
        if not _near(right, made, allowed) and _near(found, made, allowed):
            return word, f"what was found is what comes out {about}"
    return "", ""


def _near(found: torch.Tensor, exact: torch.Tensor, allowed: dict) -> bool:
    e = reference_errors(found, Reference(exact.double().contiguous()))
    return not e["non_finite"] and e["rms"] <= _SAME * allowed["rms"]


def name_of(problem: Problem, position: int) -> str:
    """As the skeleton names it, and as the graph does."""
    return f"t{position} ({problem.inputs[position]['name']})"


def _mistakes(problem: Problem, inputs: Tensors) -> Iterator[tuple[str, str, Tensors]]:
    floating = [i for i, t in enumerate(inputs) if t.is_floating_point()]
    for i, j in itertools.combinations(floating, 2):
        if inputs[i].shape == inputs[j].shape and inputs[i].dtype == inputs[j].dtype:
            mistaken = list(inputs)
            mistaken[i], mistaken[j] = inputs[j], inputs[i]
            yield (
                "exchanged_inputs",
                f"with {name_of(problem, i)} and {name_of(problem, j)} exchanged",
                mistaken,
            )
    for i in floating:
        for word, about, change in _CHANGES:
            changed = change(inputs[i])
            if changed is not None:
                mistaken = [changed if j == i else t for j, t in enumerate(inputs)]
                yield word, about.format(name_of(problem, i)), mistaken


def _transposed(t: torch.Tensor) -> torch.Tensor | None:
    """The same memory, read with the last two dims the other way round."""
    if t.dim() < 2 or 1 in t.shape[-2:]:
        return None
    *outer, rows, columns = t.shape
    return t.reshape(*outer, columns, rows).transpose(-1, -2)


def _first_for_all(t: torch.Tensor) -> torch.Tensor | None:
    return t[:1].expand(t.shape) if t.dim() and t.shape[0] > 1 else None


def _cut(t: torch.Tensor) -> torch.Tensor | None:
    if t.dtype != torch.float32:
        return None
    return (t.contiguous().view(torch.int32) & -65536).view(torch.float32)


def _rounded(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor | None]:
    return lambda t: t.to(dtype).to(t.dtype) if t.dtype.itemsize > dtype.itemsize else None


_CHANGES: tuple[tuple[str, str, Callable[[torch.Tensor], torch.Tensor | None]], ...] = (
    ("transposed_input", "with {} transposed: its last two dims exchanged", _transposed),
    ("first_for_all", "with the first part of {} (index 0 of dim 0) for all", _first_for_all),
    ("left_out", "with {} left out: as if it were 0", torch.zeros_like),
    ("left_out", "with {} left out: as if it were 1", torch.ones_like),
    ("negated_input", "with {} negated", torch.neg),
    ("rounded_input", "with {} cut to bfloat16", _cut),
    ("rounded_input", "with {} rounded to bfloat16", _rounded(torch.bfloat16)),
    ("rounded_input", "with {} rounded to float16", _rounded(torch.float16)),
)
