"""Which way to run the module is the fastest as a whole: PyTorch's own, or a plan's kernels, with either running the rest.

Each way is timed as its user sees it: a call with a synchronize around it, host time included, and calls back to back. All
take turns in one process, under torch's own flags, on the same inputs, while nothing compiles.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from tessera import leftover as leftovers
from tessera.errors import Error
from tessera.held import Held, copies, inputs_of, restore, snapshot
from tessera.timing import median_ci95

TURNS = 15  # at least, of each way
TURN_MS = 4.0  # running time of each kind of measurement in a turn, at least one call


@dataclass
class Way:
    """One way to run the module. `plan`: which of the plans given, or None for PyTorch's own."""

    runner: str  # kernels, eager or inductor
    plan: int | None
    leftover: str
    make: Callable[[], Callable]
    run: Callable | None = None
    seconds: float = 0.0  # to compile and warm
    reason: str = ""
    estimate_ms: float = 0.0
    peak_bytes: int = 0
    synchronized: list[float] = field(default_factory=list)
    back_to_back: list[float] = field(default_factory=list)

    def to_json(self) -> dict:
        row = {"runner": self.runner, "plan": self.plan, "leftover": self.leftover, "seconds": self.seconds}
        if self.reason:
            return row | {"reason": self.reason}
        call, back = median_ci95(self.synchronized), median_ci95(self.back_to_back)
        return row | {
            "call_ms": call[0],
            "call_ci95": call[1],
            "back_ms": back[0],
            "back_ci95": back[1],
            "peak_bytes": self.peak_bytes,
            "reason": "",
        }


class Settler:
    """Keeps what it compiled, so that PyTorch's ways are prepared once and the way that wins is what the user gets."""

    def __init__(self, held: Held):
        self.held = held
        self.ways: dict[str, Way] = {}

    def prepare(self, runners: list[str]) -> list[dict]:
        """PyTorch's own ways, compiled, warmed and timed: what a plan has to beat."""
        ways = [self._torch(name) for name in runners]
        return self._measured(ways, 0.6)

    def settle(self, plans: list[dict], runners: list[str], with_leftover: list[str], seconds: float) -> list[dict]:
        """PyTorch's own ways beside every plan with each of `with_leftover`, timed together."""
        ways = [self._torch(name) for name in runners]
        ways += [self._kernels(plan, i, name) for i, plan in enumerate(plans) for name in with_leftover]
        return self._measured(ways, seconds)

    def composed(self, plan: dict, leftover: str):
        """The composed module of a plan that was timed, with what was compiled for it; else None."""
        way = self.ways.get(_key(plan, leftover))
        return way.run if way else None

    def torch_way(self, name: str) -> Callable | None:
        """PyTorch's way as it was compiled, or None."""
        way = self.ways.get(name)
        return way.run if way else None

    def _torch(self, name: str) -> Way:
        if name not in self.ways:
            self.ways[name] = Way(name, None, "", functools.partial(self.held.torch_runner, name))
        return self.ways[name]

    def _kernels(self, plan: dict, index: int, leftover: str) -> Way:
        key = _key(plan, leftover)
        if key not in self.ways:
            self.ways[key] = Way("kernels", index, leftover, functools.partial(self.held.compose, plan, leftover))
        self.ways[key].plan = index
        return self.ways[key]

    def _measured(self, ways: list[Way], seconds: float) -> list[dict]:
        before = snapshot(self.held.module)
        args, kwargs = copies(*inputs_of(self.held, 1))
        with torch.no_grad():
            for way in ways:
                if way.run is None and not way.reason:
                    self.held.notify(f"preparing {_name(way)}")
                    _prepare(way, self.held.device, args, kwargs)
            _take_turns([w for w in ways if not w.reason], self.held.device, args, kwargs, seconds)
        restore(self.held.module, before)
        return [way.to_json() for way in ways]


def _key(plan: dict, leftover: str) -> str:
    return json.dumps([leftover, plan["steps"]], sort_keys=True)


def _name(way: Way) -> str:
    return way.runner if way.plan is None else f"plan {way.plan} with {way.leftover} for the rest"


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _prepare(way: Way, device: torch.device, args: tuple, kwargs: dict) -> None:
    """Compiles and warms it; notes the memory that a call takes and about how long it lasts. What fails has a reason."""
    begin = time.perf_counter()
    try:
        if missing := leftovers.missing(way.leftover or way.runner, device):
            way.reason = missing
            return
        way.run = way.make()
        for _ in range(3):
            way.run(*args, **kwargs)
        _synchronize(device)
        way.seconds = time.perf_counter() - begin
        way.peak_bytes = _peak_of(way.run, device, args, kwargs)
        begin = time.perf_counter()
        way.run(*args, **kwargs)
        _synchronize(device)
        way.estimate_ms = (time.perf_counter() - begin) * 1e3
    except torch.OutOfMemoryError as e:
        torch.cuda.empty_cache()
        way.reason = f"out of memory: {str(e).splitlines()[0]}"[:300]
    except Error as e:
        way.reason = e.diagnostic["message"]
    except Exception as e:  # noqa: BLE001 - Inductor raises many kinds; each costs this way alone
        way.reason = f"{type(e).__name__}: {(str(e).strip() or 'no text').splitlines()[0]}"[:500]


def _peak_of(run: Callable, device: torch.device, args: tuple, kwargs: dict) -> int:
    """Bytes that a call allocates at most, its results included; 0 on the host."""
    if device.type != "cuda":
        return 0
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    run(*args, **kwargs)
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _take_turns(ways: list[Way], device: torch.device, args: tuple, kwargs: dict, seconds: float) -> None:
    """Interleaved until `seconds` are over and each has had TURNS turns, but no longer than four times that."""
    for way in ways:
        way.synchronized, way.back_to_back = [], []
    begin = time.perf_counter()
    turn = 0
    while ways and turn < 400:
        spent = time.perf_counter() - begin
        if turn >= 3 and (spent > 4 * seconds or (spent > seconds and turn >= TURNS)):
            break
        for way in ways if turn % 2 else reversed(ways):
            one, many = _turn(way, device, args, kwargs)
            if turn:  # the first settles clocks and caches
                way.synchronized.append(one)
                way.back_to_back.append(many)
        turn += 1


def _turn(way: Way, device: torch.device, args: tuple, kwargs: dict) -> tuple[float, float]:
    """(ms of a synchronized call, the median of a few; ms of a call back to back)."""
    n = max(1, min(50, int(TURN_MS / max(way.estimate_ms, 1e-3))))
    run, samples = way.run, []
    _synchronize(device)
    for _ in range(n):
        begin = time.perf_counter()
        run(*args, **kwargs)
        _synchronize(device)
        samples.append((time.perf_counter() - begin) * 1e3)
    many = 2 * n
    begin = time.perf_counter()
    for _ in range(many):
        run(*args, **kwargs)
    _synchronize(device)
    return median_ci95(samples)[0], (time.perf_counter() - begin) * 1e3 / many
