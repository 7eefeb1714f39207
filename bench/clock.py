"""Times several ways to run one module side by side: whole calls, by the wall clock, so that what the host does counts.
Nothing here is the product's: its own clock (tessera.judging.timing) is one of the things that a suite may find wrong.

A *way* is a callable of the module's inputs. `sync` waits for the device. Milliseconds everywhere, seconds for budgets.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

Ways = dict[str, Callable]
WARM_CALLS, WARM_SECONDS = 5, 0.2
LEAST_ROUNDS, MOST_ROUNDS = 15, 500
# Back to back: turns of a way, the milliseconds of a turn that count, and those before them, in which a GPU's clock follows the
# load (80 to 120 ms on an H200, docs/measuring.md).
TURNS, TURN_MS, BEFORE_MS = 5, 80.0, 120.0
# Turns go on, to so many, while a way that is near the fastest is known worse than that (half its interval, relative).
MOST_TURNS, NEAR, NOISE = 15, 1.15, 0.01
WAIT_MS = 10.0  # of the calls before, between two looks at the time


@dataclass(frozen=True)
class Figure:
    """The median of the samples and half the width of its 95 % interval, by order statistics."""

    ms: float
    ci95: float
    samples: int

    def to_json(self) -> dict:
        return {"ms": self.ms, "ci95": self.ci95, "samples": self.samples}


def figure(samples: list[float]) -> Figure:
    """The interval's ends are the samples of rank n/2 -+ 0.98 sqrt(n): no assumption on the distribution."""
    s, n = sorted(samples), len(samples)
    middle = s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2
    reach = 0.98 * n**0.5
    low, high = max(0, int(n / 2 - reach)), min(n - 1, int(n / 2 + reach))
    return Figure(middle, (s[high] - s[low]) / 2, n)


def _unsure(found: dict[str, Figure]) -> bool:
    """Whether a way that is near the fastest is known badly."""
    best = min((f.ms for f in found.values()), default=0.0)
    return any(f.ms <= NEAR * best and f.ci95 > NOISE * f.ms for f in found.values())


@contextmanager
def no_collector():
    """Python's collector runs before, not in between."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Clock:
    """`now`: seconds; `seed`: of the order in which the ways take turns, drawn anew for every round."""

    def __init__(self, sync: Callable[[], None], now: Callable[[], float] = time.perf_counter, seed: int = 0):
        self.sync, self.now, self.chance = sync, now, random.Random(seed)

    def once(self, way: Callable, inputs: tuple) -> float:
        """One call from an idle device to an idle device."""
        self.sync()
        begin = self.now()
        way(*inputs)
        self.sync()
        return (self.now() - begin) * 1e3

    def warm(self, way: Callable, sets: list[tuple]) -> float:
        """Calls on every set until all that is lazy is done; about what a call takes."""
        begin, last = self.now(), []
        while len(last) < max(WARM_CALLS, len(sets)) or self.now() - begin < WARM_SECONDS:
            last.append(self.once(way, sets[len(last) % len(sets)]))
            if len(last) >= MOST_ROUNDS:
                break
        return figure(last[len(last) // 2 :]).ms

    def _order(self, names: list[str]) -> list[str]:
        return self.chance.sample(names, len(names))

    def synchronized(
        self,
        ways: Ways,
        sets: list[tuple],
        estimates: dict[str, float],
        seconds: float,
        prepare: Callable[[tuple], None] = lambda inputs: None,
    ) -> dict[str, Figure]:
        """Each call by itself, `seconds` of running time for all ways together. In a round every way is timed once, on the same
        set, in a random order; the sets rotate. Before that it runs once on the set before, as a user's loop would: what the
        host needs for it lies in the caches, whatever ran before. `prepare` runs before each call and is not timed."""
        total = 2 * sum(estimates.values()) / 1e3
        rounds = int(min(MOST_ROUNDS, max(LEAST_ROUNDS, seconds / max(total, 1e-9))))
        samples: dict[str, list[float]] = {name: [] for name in ways}
        with no_collector():
            for turn in range(rounds):
                before, now = sets[(turn - 1) % len(sets)], sets[turn % len(sets)]
                for name in self._order(list(ways)):
                    prepare(before)
                    ways[name](*before)
                    prepare(now)
                    samples[name].append(self.once(ways[name], now))
        return {name: figure(s) for name, s in samples.items()}

    def back_to_back(self, ways: Ways, sets: list[tuple], estimates: dict[str, float]) -> dict[str, Figure]:
        """Calls one after the other with no wait between them, milliseconds a call. A noisy host costs more turns."""
        samples: dict[str, list[float]] = {name: [] for name in ways}
        found: dict[str, Figure] = {}
        with no_collector():
            for turn in range(MOST_TURNS):
                for name in self._order(list(ways)):
                    samples[name].append(self._turn(ways[name], sets, estimates[name]))
                found = {name: figure(s) for name, s in samples.items()}
                if turn + 1 >= TURNS and not _unsure(found):
                    break
        return found

    def _turn(self, way: Callable, sets: list[tuple], estimate: float) -> float:
        calls, taken = self._some(way, sets, max(1, int(WAIT_MS / max(estimate, 1e-3))))
        while taken < BEFORE_MS:
            left = min(WAIT_MS, BEFORE_MS - taken)
            more, ms = self._some(way, sets, max(1, int(left * calls / taken)))
            calls, taken = calls + more, taken + ms
        counted, ms = self._some(way, sets, max(3, int(TURN_MS * calls / taken)))
        return ms / counted

    def _some(self, way: Callable, sets: list[tuple], calls: int) -> tuple[int, float]:
        """`calls` and the milliseconds that they take, to an idle device."""
        begin = self.now()
        for i in range(calls):
            way(*sets[i % len(sets)])
        self.sync()
        return calls, (self.now() - begin) * 1e3
