"""How far results are off: against the module in fp64 on the same inputs, as relative errors."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import nn
from torch.utils import _pytree as pytree

# Elements compared at once: fp64 copies of a whole result may not fit beside it.
CHUNK = 1 << 26


def tensors_of(result) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def _double(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def reference(module: nn.Module, inputs: tuple) -> list[torch.Tensor]:
    """The results of a copy of the module in fp64."""
    with torch.no_grad():
        return tensors_of(copy.deepcopy(module).double()(*map(_double, inputs)))


def draws(module: nn.Module, inputs: tuple) -> bool:
    """Whether two calls on the same inputs differ beyond the order of sums: the forward draws random numbers."""
    with torch.no_grad():
        first, second = tensors_of(module(*inputs)), tensors_of(module(*inputs))
    return errors(second, [t.double() if t.is_floating_point() else t for t in first])["rms_error"] > 0.01


def errors(results: list[torch.Tensor], right: list[torch.Tensor]) -> dict:
    """The largest over the results of ||d - r|| / ||r|| and of max |d - r| / mean |r|; integers count as numbers."""
    if [t.shape for t in results] != [t.shape for t in right]:
        raise ValueError(
            f"results of shapes {[tuple(t.shape) for t in results]}, expected {[tuple(t.shape) for t in right]}"
        )
    found = {"rms_error": 0.0, "max_error": 0.0}
    for d, r in zip(results, right, strict=True):
        d, r = d.reshape(-1), r.reshape(-1)
        square, norm, most, total = 0.0, 0.0, 0.0, 0.0
        for begin in range(0, d.numel(), CHUNK):
            b = r[begin : begin + CHUNK].double()
            e = d[begin : begin + CHUNK].double() - b
            square, norm = square + float((e * e).sum()), norm + float((b * b).sum())
            most, total = _larger(most, float(e.abs().max())), total + float(b.abs().sum())
        if d.numel():
            found["rms_error"] = _larger(found["rms_error"], (square / max(norm, 1e-300)) ** 0.5)
            found["max_error"] = _larger(found["max_error"], most / max(total / d.numel(), 1e-300))
    return found


def _larger(a: float, b: float) -> float:
    """max() would lose a NaN."""
    return b if b != b or b > a else a


def of_ways(ways: dict[str, Callable], inputs: tuple, right: list[torch.Tensor]) -> dict[str, dict]:
    found = {}
    for name, way in ways.items():
        with torch.no_grad():
            result = tensors_of(way(*inputs))
        found[name] = errors(result, right)
        del result
    return found
