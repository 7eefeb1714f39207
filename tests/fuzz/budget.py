"""How far a result may be off where a rewrite computes it otherwise: as far as roundings move eager's own.

Every step of the program is run again with its result moved by up to one unit in the last place, some times, and the whole in
float64. An element may be off by a multiple of what those move it by; one that they move from finite to not, or an integer that
they change, is not judged.
"""

from __future__ import annotations

import contextlib

import torch
from program import Program, draw_double, make_double, make_noisy
from twin import ERRORS, Seen, Twin, default_dtype

_RUNS = 4
_FACTOR, _ULPS = 8.0, 8.0


class Noise:
    """Moves what a step made; a view, or what was written to in place, is left as it is."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.seen: list = []

    def __call__(self, value):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.itemsize > 1:
            storage = value.untyped_storage()
            if all(storage.data_ptr() != s.data_ptr() for s in self.seen):
                eps = torch.finfo(value.dtype).eps
                moved = 1 + eps * (2 * torch.rand(value.shape, generator=self.generator, dtype=torch.float64) - 1)
                with contextlib.suppress(*ERRORS):
                    value.copy_(value.double() * moved)
            self.seen.append(storage)
        return value


class Budget:
    """Of one round of a program: the rounds up to it are run again."""

    def __init__(self, p: Program, rounds: list[tuple[int, dict | None]]):
        self.near: list[Seen] = []
        for seed in range(_RUNS):
            noise = Noise(seed)
            twin = Twin(make_noisy(p, noise), p)
            self._last(twin, rounds, noise)
        with default_dtype(torch.float64):
            self.double_from = len(self.near)
            self._last(Twin(make_double(p), p, draw_double), rounds, None)

    def _last(self, twin: Twin, rounds: list, noise: Noise | None) -> None:
        seen = None
        for r, change in rounds:
            if noise:
                tensors = [*twin.module._parameters.values(), *twin.module._buffers.values()]
                noise.seen[:] = [t.untyped_storage() for t in tensors]
                prepare = twin.prepare

                def prepared(r, change, prepare=prepare):
                    args = prepare(r, change)
                    noise.seen += [a.untyped_storage() for a in args if isinstance(a, torch.Tensor)]
                    return args

                twin.prepare = prepared
            try:
                seen = twin.call(r, change)
            except ERRORS:  # float64 is not taken by every op
                return
            if noise:
                twin.prepare = prepare
        if seen is not None:
            self.near.append(seen)

    def tolerated(self, name: str, eager: torch.Tensor, other: torch.Tensor) -> bool:
        near = [s.held[name] for s in self.near if name in s.held and s.held[name].shape == eager.shape]
        if not near:
            return False
        if not eager.is_floating_point() or eager.itemsize == 1:
            moved = torch.zeros(eager.shape, dtype=torch.bool)
            for n in near:
                moved |= n.to(eager.dtype).float() != eager.float()
            return bool(((eager.float() == other.float()) | moved).all())
        e, o = eager.double(), other.double()
        near = [n.double() for n in near]
        judged = torch.ones(e.shape, dtype=torch.bool)
        moved = torch.zeros_like(e)
        for n in near:
            judged &= (n.isfinite() == e.isfinite()) & (n.isfinite() | (n == e) | (n.isnan() & e.isnan()))
            moved = torch.maximum(moved, torch.where(n.isfinite() & e.isfinite(), (n - e).abs(), 0.0))
        same = (e == o) | (e.isnan() & o.isnan())
        size = e[e.isfinite()].abs().median() if e.isfinite().any() else torch.zeros(())
        typical = moved[judged & e.isfinite()].median() if (judged & e.isfinite()).any() else torch.zeros(())
        eps = torch.finfo(eager.dtype).eps
        allowed = _FACTOR * (moved + typical) + _ULPS * eps * (e.abs() + size)
        return bool((same | ~judged | ((e - o).abs() <= allowed)).all())
