"""Which way to run the module is the fastest as a whole: PyTorch's own, or a plan's kernels, with either running the rest.

Each way is timed as its user sees it: a call with a synchronize around it, host time included, and calls back to back. All
take turns in one process, under torch's own flags, on the same sets of inputs, which rotate as a user's inputs do, while
nothing compiles. A host that other work slows down slows all ways of a turn alike: what a turn was slower than the others is
taken out (`steadied`), and turns go on while several ways may win and one of them is known worse than by `NOISE`.
"""

from __future__ import annotations

import functools
import gc
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.utils import _pytree as pytree

from tessera.common.errors import Error
from tessera.judging.compile_time import Compile
from tessera.judging.rewind import Rewind
from tessera.judging.timing import CLOCK_FOLLOWS_MS, median_ci95
from tessera.judging.trace_check import of_compiled
from tessera.running import fast_guard
from tessera.running import leftover as leftovers
from tessera.running.composed_status import why_not_served
from tessera.tracing.held import Held, free, inputs_of

TURNS = 15  # at least, of each way
TURN_MS = 4.0  # running time of the synchronized calls in a turn, at least one call
WAIT_MS = 10.0  # of calls back to back, between two looks at the time
NOISE = 0.01  # half the 95 % interval of a way that may win, relative
NEAR = 0.9  # of the best in both measures: may win
HOSTS_MS = 5.0  # of longer calls the host's time is a small part, and the clock tells ways apart
CYCLES_A_MS = 2e6  # of a GPU at its highest clock
SET_BYTES, MOST_SETS = 256 << 20, 4  # together more than the L2 holds, so that no way finds its inputs there


@dataclass(frozen=True)
class BackToBack:
    """A turn of calls back to back, milliseconds: `before` does not count, `counts` does. Every how many turns one is taken."""

    before: float
    counts: float
    every: int


BACK = {"cuda": BackToBack(CLOCK_FOLLOWS_MS, 40.0, 5)}
BACK_ELSEWHERE = BackToBack(3.0, 8.0, 1)


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
    no_time: bool = False  # that is the reason: the search's seconds are spent
    estimate_ms: float = 0.0
    peak_bytes: int = 0
    synchronized: list[list[float]] = field(default_factory=list)  # by turn
    back_to_back: list[list[float]] = field(default_factory=list)
    times: dict = field(default_factory=dict)

    def to_json(self) -> dict:
        row = {"runner": self.runner, "plan": self.plan, "leftover": self.leftover, "seconds": self.seconds}
        if self.reason:
            return row | {"reason": self.reason} | ({"no_time": True} if self.no_time else {})
        return row | self.times | {"peak_bytes": self.peak_bytes, "reason": ""}


@dataclass
class Inputs:
    """A set of inputs, on which every call finds what the first one found."""

    args: tuple
    kwargs: dict
    rewind: Callable[[], None]

    def call(self, run: Callable) -> None:
        self.rewind()
        run(*self.args, **self.kwargs)


class Settler:
    """Keeps what it compiled, so that PyTorch's ways are prepared once and the way that wins is what the user gets."""

    def __init__(self, held: Held):
        self.held = held
        self.ways: dict[str, Way] = {}

    def compile(self, runners: list[str], compile: Compile | None = None) -> None:
        """Compiles and warms PyTorch's own ways, and times nothing: other work may run meanwhile. `compile`: what Inductor may take."""
        with self.held.kept():
            self._prepared([self._torch(name) for name in runners], _all_inputs(self.held), compile)
        free(self.held.device)

    def prepare(self, runners: list[str], compile: Compile | None = None) -> list[dict]:
        """PyTorch's own ways, compiled, warmed and timed: what a plan has to beat."""
        ways = [self._torch(name) for name in runners]
        return self._measured(ways, 0.6, compile)

    def settle(
        self, plans: list[dict], runners: list[str], seconds: float, compile: Compile | None = None
    ) -> list[dict]:
        """PyTorch's own ways beside every {"plan", "leftovers"} with each of its leftovers, timed together. `compile`: what
        Inductor may take for the rests of all plans; a rest that it has no time for is a way that cannot run."""
        ways = [self._torch(name) for name in runners]
        ways += [self._kernels(p["plan"], i, name) for i, p in enumerate(plans) for name in p["leftovers"]]
        return self._measured(ways, seconds, compile)

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

    def _measured(self, ways: list[Way], seconds: float, compile: Compile | None = None) -> list[dict]:
        sets = _all_inputs(self.held)
        with self.held.kept(), torch.no_grad():
            self._prepared(ways, sets, compile)
            fast_guard.wait(20)  # later calls have it
            _take_turns([w for w in ways if not w.reason], self.held.device, sets, seconds)
            for way in ways:
                short = self.held.device.type == "cuda" and way.estimate_ms <= HOSTS_MS
                if way.plan is None and not way.reason and short:
                    way.times["device_ms"] = _device_ms(way, self.held.device, sets[0])
            for way in ways:
                way.reason = way.reason or _not_its_own(way)
        del sets
        free(self.held.device)  # the processes of the search are other ones
        return [way.to_json() for way in ways]

    @torch.no_grad()
    def _prepared(self, ways: list[Way], sets: list[Inputs], compile: Compile | None = None) -> None:
        for way in sorted(ways, key=_compiled_last):
            if way.run is not None or way.reason:
                continue
            counts = way.leftover == "inductor" or (way.runner == "inductor" and compile and compile.ends)
            budget = compile if counts else None
            if budget and (reason := budget.refuses()):
                way.reason, way.no_time = reason, True
                continue
            self.held.notify(f"preparing {_name(way)}")
            if budget is None:
                _prepare(way, self.held.device, sets[0])
            elif reason := budget.run(functools.partial(_prepare, way, self.held.device, sets[0])):
                way.reason, way.no_time, way.run = reason, True, None
            if way.runner == "inductor" and not way.reason:
                way.reason = of_compiled(self.held, way.run)
            if budget:
                budget.took(way.seconds)


def _compiled_last(way: Way) -> tuple:
    """The order in which ways are prepared: what needs no compiler first, then the plan with the fewest kernels (the engine
    sends it last), whose rest Inductor can fuse the most of."""
    return (way.leftover == "inductor", -(way.plan or 0) if way.leftover == "inductor" else 0)


def _key(plan: dict, leftover: str) -> str:
    return json.dumps([leftover, plan["steps"]], sort_keys=True)


def _name(way: Way) -> str:
    return way.runner if way.plan is None else f"plan {way.plan} with {way.leftover} for the rest"


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _prepare(way: Way, device: torch.device, inputs: Inputs) -> None:
    """Compiles and warms it; notes the memory that a call takes and about how long it lasts. What fails has a reason."""
    begin = time.perf_counter()
    try:
        if missing := leftovers.missing(way.leftover or way.runner, device):
            way.reason = missing
            return
        way.run = way.make()
        inputs.call(way.run)
        way.peak_bytes = _peak_of(way.run, device, inputs)
        inputs.call(way.run)
        _synchronize(device)
        way.seconds = time.perf_counter() - begin
        way.reason = _not_its_own(way)
        way.estimate_ms = _once(way, device, inputs)
    except torch.OutOfMemoryError as e:
        torch.cuda.empty_cache()
        way.reason = f"out of memory: {str(e).splitlines()[0]}"[:300]
    except Error as e:
        way.reason = e.diagnostic["message"]
    except Exception as e:  # noqa: BLE001 - Inductor raises many kinds; each costs this way alone
        way.reason = f"{type(e).__name__}: {(str(e).strip() or 'no text').splitlines()[0]}"[:500]


def _not_its_own(way: Way) -> str:
    """Why what was timed was not the plan: the original module ran in some call. "" where the plan ran in each."""
    why = why_not_served(way.run) if way.plan is not None and way.run is not None else ""
    return why and f"the original module ran in place of the kernels: {why}"


def _peak_of(run: Callable, device: torch.device, inputs: Inputs) -> int:
    """Bytes that a call allocates at most, its results included; 0 on the host. The call is a way's second: CUDA graphs of
    Inductor's are recorded in it, and what they replay later allocates nothing."""
    if device.type != "cuda":
        inputs.call(run)
        return 0
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    inputs.call(run)
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


def _all_inputs(held: Held) -> list[Inputs]:
    return [Inputs(*given, Rewind(held, *given)) for given in _input_sets(held)]


def _input_sets(held: Held) -> list[tuple[tuple, dict]]:
    """Two to four sets of inputs, which share those that keep their addresses from call to call; fewer where memory is short, at
    least the given ones themselves."""
    sets: list[tuple[tuple, dict]] = []
    size, lasting = 0, held.options.get("captured") or ()
    while len(sets) < 2 or (len(sets) < MOST_SETS and size < SET_BYTES):
        try:
            args, kwargs = held.copies(*inputs_of(held, 1 + len(sets)))
        except torch.OutOfMemoryError:
            if not sets and held.written_inputs():
                raise  # the caller's own tensors would be changed
            return sets or [(held.args, held.kwargs)]
        sets.append((tuple(sets[0][0][i] if sets and i in lasting else t for i, t in enumerate(args)), kwargs))
        size += sum(t.numel() * t.itemsize for t in pytree.tree_leaves(sets[-1]) if isinstance(t, torch.Tensor))
    return sets


def _take_turns(ways: list[Way], device: torch.device, sets: list[Inputs], seconds: float) -> None:
    """Interleaved until `seconds` are over and each has had TURNS turns, but no longer than four times that; the longer the
    noisier. Python's collector does not run meanwhile."""
    for way in ways:
        way.synchronized, way.back_to_back = [], []
    chance, begin, turn = random.Random(0), time.perf_counter(), 0
    every = BACK.get(device.type, BACK_ELSEWHERE).every
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        while ways and turn < 400:
            spent = time.perf_counter() - begin
            enough = spent > seconds and turn >= TURNS and not _undecided(ways)
            if turn >= 3 and (spent > 4 * seconds or enough):
                break
            rotated = sets[turn % len(sets) :] + sets[: turn % len(sets)]
            found = _synchronized(ways, device, rotated, chance)
            if turn:  # the first settles clocks and caches
                for way, one in found:
                    way.synchronized.append(one)
                if turn % every == 1 % every:
                    for way in chance.sample(ways, len(ways)):
                        way.back_to_back.append([_back_to_back(way, device, rotated)])
            turn += 1
    finally:
        if collects:
            gc.enable()
    _conclude(ways)


def _synchronized(ways: list[Way], device: torch.device, sets: list[Inputs], chance: random.Random) -> list[tuple]:
    """For each way: ms of synchronized calls, of which every way makes one before the next is made. A call follows one on other
    inputs, as in a user's loop: ways that share compiled code would find it in the host's caches otherwise, and others would
    not."""
    slowest = max(way.estimate_ms for way in ways)
    singles: dict[int, list[float]] = {id(way): [] for way in ways}
    for i in range(max(1, min(50, int(TURN_MS / max(slowest, 1e-3))))):
        for way in chance.sample(ways, len(ways)):
            sets[(i + 1) % len(sets)].call(way.run)
            singles[id(way)].append(_once(way, device, sets[i % len(sets)]))
    return [(way, singles[id(way)]) for way in ways]


def _once(way: Way, device: torch.device, inputs: Inputs) -> float:
    inputs.rewind()
    _synchronize(device)
    begin = time.perf_counter()
    way.run(*inputs.args, **inputs.kwargs)
    _synchronize(device)
    return (time.perf_counter() - begin) * 1e3


def _back_to_back(way: Way, device: torch.device, sets: list[Inputs]) -> float:
    """Milliseconds a call, once the clock has followed the load."""
    turn = BACK.get(device.type, BACK_ELSEWHERE)

    def some(ms: float, call_ms: float) -> tuple[int, float]:
        """(calls made, ms that they took) of calls for about `ms`."""
        calls = max(1, int(ms / max(call_ms, 1e-3)))
        begin = time.perf_counter()
        for i in range(calls):
            sets[i % len(sets)].call(way.run)
        _synchronize(device)
        return calls, (time.perf_counter() - begin) * 1e3

    calls, taken = some(min(turn.before, WAIT_MS), way.estimate_ms)
    while taken < turn.before:
        more = some(min(turn.before - taken, WAIT_MS), taken / calls)
        calls, taken = calls + more[0], taken + more[1]
    counted, ms = some(max(turn.counts, 2 * taken / calls), taken / calls)
    return ms / counted


def steadied(samples: list[list[list[float]]]) -> list[list[float]]:
    """Samples by way and turn to samples by way, as they would be had all turns been alike: a turn's level is the median over
    the ways of how its median stands to the way's."""
    by_turn = [[statistics.median(turn) for turn in way] for way in samples]
    usual = [statistics.median(way) for way in by_turn]
    levels = [statistics.median(w[i] / u for w, u in zip(by_turn, usual, strict=True)) for i in range(len(samples[0]))]
    return [[x / level for turn, level in zip(way, levels, strict=True) for x in turn] for way in samples]


def _device_ms(way: Way, device: torch.device, inputs: Inputs) -> float:
    """Milliseconds that a call keeps the device busy for: calls that wait behind others of it, so that no time of the host's is
    between them. Few calls, for a queue holds about a thousand kernels."""
    calls, found = 3, []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(device)
        torch.cuda._sleep(int((2.0 + 3 * calls * way.estimate_ms) * CYCLES_A_MS))
        begin.record()
        for _ in range(calls):
            inputs.call(way.run)
        end.record()
        torch.cuda.synchronize(device)
        found.append(begin.elapsed_time(end) / calls)
    return statistics.median(found)


def _conclude(ways: list[Way]) -> None:
    if not ways:
        return
    for key in ("synchronized", "back_to_back"):
        short = {"synchronized": "call", "back_to_back": "back"}[key]
        for way, samples in zip(ways, steadied([getattr(w, key) for w in ways]), strict=True):
            way.times[f"{short}_ms"], way.times[f"{short}_ci95"] = median_ci95(samples)


def _undecided(ways: list[Way]) -> bool:
    """Whether one of several ways that may win is known too badly."""
    _conclude(ways)
    best = {key: min(w.times[key] for w in ways) for key in ("call_ms", "back_ms")}
    near = [w for w in ways if all(NEAR * w.times[key] <= best[key] for key in best)]
    return len(near) > 1 and any(
        w.times[f"{key}_ci95"] > NOISE * w.times[f"{key}_ms"] for w in near for key in ("call", "back")
    )
