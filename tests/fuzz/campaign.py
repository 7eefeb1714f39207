"""A run over many programs: batches through one export, what fails alone again, the first of each kind made small and kept."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from devices import suited
from generator import generate
from program import Program
from scripts import script
from shrinking import shrunk
from tally import Tally
from trial import Failure, Together, staged

BATCH = 12
_SHRUNK_OF_A_KIND = 1


@dataclass
class Found:
    program: Program
    failure: Failure
    seed: int


@dataclass
class Campaign:
    first: int
    count: int
    minutes: float = 0.0
    say: Callable[[str], None] = print
    shrink_seconds: float = 45.0
    size: int = BATCH
    tally: Tally = field(default_factory=Tally)
    found: list[Found] = field(default_factory=list)

    trial = staticmethod(staged)

    def run(self) -> Tally:
        end = time.monotonic() + 60 * self.minutes if self.minutes else float("inf")
        for first in range(self.first, self.first + self.count, self.size):
            if time.monotonic() > end:
                break
            seeds = range(first, min(first + self.size, self.first + self.count))
            self.batch([(seed, p) for seed in seeds if (p := self._suited(seed))])
        return self.tally

    def drawn(self, seed: int) -> Program:
        return generate(seed)

    def _suited(self, seed: int) -> Program | None:
        with torch.device("cpu"):
            p = self.drawn(seed)
        return suited(p)

    def batch(self, programs: list[tuple[int, Program]]) -> None:
        for _, p in programs:
            self.tally.take(p)
        suspects = self._together(programs)
        for i, (seed, p) in enumerate(programs):
            if i in suspects:
                self._alone(seed, p)
            else:
                self.tally.right += 1

    def tried(self, programs: list[Program]) -> set[int]:
        """Through the road in one export: the places of those that have to be tried alone. Errors: the road's."""
        together = Together(programs)
        self.tally.exact += together.exact.count("exact")
        return together.run()

    def _together(self, programs: list[tuple[int, Program]]) -> set[int]:
        """The places of those that have to be tried alone. What the tracer or the tool refuses a batch for is found by halving."""
        if len(programs) < 2:
            return set(range(len(programs)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.tried([p for _, p in programs])
        except Exception:  # noqa: BLE001 - the tracer, or the tool
            half = len(programs) // 2
            return self._together(programs[:half]) | {half + i for i in self._together(programs[half:])}

    def _alone(self, seed: int, p: Program) -> None:
        failure = self.trial(p)
        if failure is None:
            self.tally.right += 1
            return
        self.tally.kinds[failure.kind] += 1
        self.found.append(Found(p, failure, seed))
        told = failure.stage in ("refused", "undefined") or self.tally.kinds[failure.kind] > _SHRUNK_OF_A_KIND
        if self.shrink_seconds and not told:
            small = shrunk(p, failure, self.trial, self.shrink_seconds)
            failure = self.trial(small) or failure
            self.found[-1] = Found(small, failure, seed)
            self.say(f"seed {seed}: {failure}\n{small.to_json()}\n{script(small, str(failure))}")
        else:
            self.say(f"seed {seed}: {failure.kind if failure.stage in ('refused', 'undefined') else failure}")
