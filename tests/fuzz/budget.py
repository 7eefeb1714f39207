"""How far a result may be off where a rewrite computes it otherwise: as far as roundings move eager's own.

The program is run again some times, the result of every op of PyTorch's moved by up to one unit in the last place, and once in
float64. An element may be off by a multiple of what those move it by; one that they move from finite to not, or an integer that
they change, is not judged.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import torch
from program import Program, draw_double, make_double, make_module
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from twin import ERRORS, Seen, Twin, default_dtype

_RUNS = 8
_FACTOR, _ULPS = 8.0, 8.0


# Operands of this size and more are taken apart into parts of which one is no number (docs/limits.md, "Infinities in fp32").
_APART = 2.0**128 - 2.0**116
_PRODUCT = re.compile(r"aten\.(mm|addmm|bmm|baddbmm|mv|addmv|dot|linear|convolution|_scaled_dot_product\w*)\.")
_EXTREMUM = re.compile(r"aten\.(a?max|a?min|aminmax|\w*max_pool\w*)\.")


def _zeros_of_both_signs(t: torch.Tensor) -> bool:
    zeros = t == 0
    return bool((zeros & t.signbit()).any() and (zeros & ~t.signbit()).any())


def _not_apart(t: torch.Tensor) -> torch.Tensor:
    apart = t.dtype == torch.float32 and t.device.type != "cpu"
    return torch.where(t.abs() >= _APART, torch.nan, t) if apart else t


class Noise(TorchDispatchMode):
    """Moves what an op made, and what a norm reads, which rounds within; a view, or what was written to in place, is left as it is.
    On a GPU an infinite operand of a product in float32 may count as NaN. Where the largest or smallest element is a zero, the order of the op's loop says which of two signs it has."""

    def __init__(self, seed: int, given: list[torch.Tensor]):
        super().__init__()
        self.generator = torch.Generator("cpu").manual_seed(seed)
        self.seen = {t.untyped_storage().data_ptr(): t for t in given}  # by memory, which so lasts

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "norm" in str(func) and isinstance(args[0], torch.Tensor):
            args = (args[0].clone(), *args[1:])
            self._move(args[0])
        if _PRODUCT.match(str(func)):
            args = pytree.tree_map_only(torch.Tensor, _not_apart, args)
        made = func(*args, **(kwargs or {}))
        if _EXTREMUM.match(str(func)) and args[0].is_floating_point() and _zeros_of_both_signs(args[0]):
            self._turn_zeros(made)
        for t in pytree.tree_leaves(made):
            if isinstance(t, torch.Tensor) and t.layout == torch.strided:
                if t.untyped_storage().data_ptr() not in self.seen:
                    self._move(t)
                self.seen.setdefault(t.untyped_storage().data_ptr(), t)
        return made

    def _drawn(self, t: torch.Tensor) -> torch.Tensor:
        """From 0 to 1 for each element, on any device the same. Under a dispatch mode no default device is in force."""
        return torch.rand(t.shape, generator=self.generator, dtype=torch.float64, device="cpu").to(t.device)

    def _turn_zeros(self, made) -> None:
        for t in pytree.tree_leaves(made):
            if isinstance(t, torch.Tensor) and t.is_floating_point():
                turned = self._drawn(t) < 0.5
                t.copy_(torch.where((t == 0) & turned, -t, t))

    def _move(self, t: torch.Tensor) -> None:
        if t.is_floating_point() and t.itemsize > 1:
            unit = torch.finfo(t.dtype).eps * (2 * self._drawn(t) - 1)
            with contextlib.suppress(*ERRORS):
                t.copy_(t.double() * (1 + unit))


class _Packed(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.scaled_dot_product_attention:
            args = pytree.tree_map_only(torch.Tensor, torch.Tensor.contiguous, args)
        return func(*args, **(kwargs or {}))


def _backend(seed: int) -> contextlib.AbstractContextManager:
    """How attention's operands lie decides by which of its backends eager runs, and these differ where a row has no finite score."""
    return (contextlib.nullcontext, lambda: sdpa_kernel(SDPBackend.MATH), _Packed)[seed % 3]()


class Budget:
    """Of one round of a program: the rounds up to it are run again, as often as it takes to say that a result is near enough.
    `signs`: a zero has eager's sign, unless roundings decide it."""

    def __init__(self, p: Program, rounds: list[tuple[int, dict | None]], signs: bool = True):
        self.near: list[Seen] = []
        self._signs = signs
        self._error: Exception | None = None
        self._left = self._runs(p, rounds)

    def _runs(self, p: Program, rounds: list) -> Iterator[None]:
        for seed in range(_RUNS):
            self._last(Twin(make_module(p), p), rounds, seed)
            yield
        if not self.near:
            raise self._error or RuntimeError("the roundings of a program without rounds cannot be moved")
        with default_dtype(torch.float64):
            self._last(Twin(make_double(p), p, draw_double), rounds, None)
        yield

    def _last(self, twin: Twin, rounds: list, seed: int | None) -> None:
        def noisy(*args):
            state = [*twin.module._parameters.values(), *twin.module._buffers.values()]
            with _backend(seed), Noise(seed, [t for t in (*args, *state) if isinstance(t, torch.Tensor)]):
                return twin.module(*args)

        seen = None
        for r, change in rounds:
            try:
                seen = twin.call(r, change, None if seed is None else noisy)
            except ERRORS as e:  # float64 is not taken by every op
                self._error = e
                return
        if seen is not None:
            self.near.append(seen)

    def tolerated(self, name: str, eager: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """By element: whether it is near enough."""
        near = self._near_enough(name, eager, other)
        while not near.all() and next(self._left, self) is not self:
            near = self._near_enough(name, eager, other)
        return near

    def _near_enough(self, name: str, eager: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        near = [s.held[name] for s in self.near if name in s.held and s.held[name].shape == eager.shape]
        if not eager.is_floating_point() or eager.itemsize == 1:
            moved = torch.zeros(eager.shape, dtype=torch.bool)
            for n in near:
                moved |= n.to(eager.dtype).float() != eager.float()
            return (eager.float() == other.float()) | moved
        e, o = eager.double(), other.double()
        near = [n.double() for n in near]
        judged = torch.ones(e.shape, dtype=torch.bool)
        moved = torch.zeros_like(e)
        for n in near:
            judged &= (n.isfinite() == e.isfinite()) & (n.isfinite() | (n == e) | (n.isnan() & e.isnan()))
            moved = torch.maximum(moved, torch.where(n.isfinite() & e.isfinite(), (n - e).abs(), 0.0))
        turned = torch.full(e.shape, not self._signs)  # zeros whose sign a rounding decides
        for n in near:
            turned |= n.signbit() != e.signbit()
        same = ((e == o) & ((e != 0) | (e.signbit() == o.signbit()) | turned)) | (e.isnan() & o.isnan())
        size = e[e.isfinite()].abs().median() if e.isfinite().any() else torch.zeros(())
        typical = moved[judged & e.isfinite()].median() if (judged & e.isfinite()).any() else torch.zeros(())
        eps = torch.finfo(eager.dtype).eps
        allowed = _FACTOR * (moved + typical) + _ULPS * eps * (e.abs() + size)
        return same | ~judged | ((e != o) & ((e - o).abs() <= allowed))
