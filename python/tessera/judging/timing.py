"""Times of candidates side by side (docs/measuring.md): interleaved, on cold caches, medians with their spread."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tessera.judging.cold_cache import ColdCache
from tessera.judging.guarded import Guarded
from tessera.judging.problem import Dataset, Problem, dtype_of
from tessera.judging.verify import check_form, check_memory, compare

MIN_ROUNDS, MAX_ROUNDS = 5, 400
# Half a time's 95 % interval beyond this share of it says that other work ran on the machine: no comparison rests on it.
MOST_NOISE = 0.05
# A run may not be faster than the roofline by more than the clock's own error.
FLOOR_SLACK = 0.9
# Under load: turns of each, and the running time of a turn that counts, in ms.
TURNS, TURN_MS = 2, 48.0
# An H200's clock is 80 to 120 ms behind its load, up or down: calls back to back count after that (docs/measuring.md).
CLOCK_FOLLOWS_MS = 120.0
# A finalist this much slower than the fastest is not timed under load, which does not change the order as far.
HOPELESS = 1.3
# Where a call takes the host longer than the device: calls enqueued ahead of it (its queue holds about a thousand kernels),
# the longest wait for that, and the shortest call that is worth it: below, power does not limit the clock.
MOST_AHEAD, LONGEST_SPIN_MS, LEAST_AHEAD_MS = 200, 200.0, 0.05


def median_ci95(samples: list[float]) -> tuple[float, float]:
    """The median and half the width of its 95 % interval by order statistics: no assumption on the distribution."""
    s = sorted(samples)
    n = len(s)
    middle = s[n // 2] if n % 2 else (s[n // 2 - 1] + s[n // 2]) / 2
    half = 0.98 * n**0.5
    low, high = max(0, int(n / 2 - half)), min(n - 1, int(n / 2 + half))
    return middle, (s[high] - s[low]) / 2


def reliable(samples: list[float]) -> bool:
    """Whether the median of the samples can be compared with another."""
    ms, ci95 = median_ci95(samples)
    return ci95 <= MOST_NOISE * ms


class CudaClock:
    """Times one enqueued call by events. Before each the L2 is emptied; then a spin keeps the device busy for as long as
    the host needs to enqueue the call, so that no gap between launches is timed."""

    def __init__(self, device: torch.device):
        properties = torch.cuda.get_device_properties(device)
        self._cache = ColdCache(device)
        self._cycles_per_ms = getattr(properties, "clock_rate", 2_000_000)  # kHz

    def warm(self, call: Callable) -> tuple[float, float]:
        """(device ms, host ms) of a call, roughly; also loads and warms what is lazy. CUDA graphs of Inductor's are recorded in
        the second call."""
        for _ in range(2):
            call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        host = (time.perf_counter() - begin) * 1e3
        torch.cuda.synchronize()
        return self.sample(call, host), host

    def start(self, call: Callable, host_ms: float):
        """Enqueues one timed call; `elapsed` reads it after a synchronize."""
        self._cache.empty()
        torch.cuda._sleep(int(min(host_ms * 1.5 + 0.02, 20.0) * self._cycles_per_ms))
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        result = call()
        after.record()
        return before, after, result

    def sample(self, call: Callable, host_ms: float) -> float:
        before, after, _ = self.start(call, host_ms)
        torch.cuda.synchronize()
        return before.elapsed_time(after)

    def sustained(self, call: Callable, estimate_ms: float, host_ms: float) -> float | None:
        """Milliseconds a call, back to back: on warm caches, at the clock that the chip holds under this load's power.
        Where enqueuing takes longer than running, the device spins until the host is far enough ahead. None where the
        host was behind all the same, so that it is what was timed."""
        n = max(2, int(TURN_MS / max(estimate_ms, 1e-3)))
        settling = int(CLOCK_FOLLOWS_MS / max(estimate_ms, 1e-3))
        lag = 1.5 * host_ms - estimate_ms  # of the host in a call, with a margin
        if lag > 0:  # the calls before those that count have to be enqueued ahead, too
            n, settling = min(n, MOST_AHEAD), min(settling, MOST_AHEAD // 2)
        total = n + settling
        before, near_end, after = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        if lag > 0:
            torch.cuda._sleep(int(min(total * lag, LONGEST_SPIN_MS) * self._cycles_per_ms))
        for i in range(total):
            if i == settling:
                before.record()
            if i == total - max(1, total // 8):
                near_end.record()
            call()
        after.record()
        behind = near_end.query()
        torch.cuda.synchronize()
        return None if behind else before.elapsed_time(after) / n


def under_load(clock: CudaClock, subjects: list) -> list[float]:
    """Each subject's median time a call back to back (`call`, `estimate_ms`, `host_ms`), in turns; [] where the host would
    be what is timed in one of them, so that they could not be compared."""
    if not subjects or any(s.host_ms > 0.8 * s.estimate_ms and s.estimate_ms < LEAST_AHEAD_MS for s in subjects):
        return []
    samples: list[list[float]] = [[] for _ in subjects]
    for turn in range(TURNS):
        for i in range(len(subjects)) if turn % 2 else reversed(range(len(subjects))):
            s = subjects[i]
            ms = clock.sustained(s.call, s.estimate_ms, s.host_ms)
            if ms is None:
                return []
            samples[i].append(ms)
    return [median_ci95(s)[0] for s in samples]


class HostClock:
    """Times one call by the wall clock. Caches are kept cold by rotating input sets (`Subject.calls`)."""

    def warm(self, call: Callable) -> tuple[float, float]:
        call()
        ms = self.sample(call, 0.0)
        return ms, ms

    def sample(self, call: Callable, host_ms: float) -> float:
        begin = time.perf_counter()
        call()
        return (time.perf_counter() - begin) * 1e3


class Subject:
    """One candidate under the clock: a call on every input set, its samples, what went wrong."""

    def __init__(self, runner, sets: list, outputs: list[Guarded]):
        self.runner = runner
        self.calls = [runner.prepare(data.tensors, [g.tensor for g in outputs]) for data in sets]
        self.call = self.calls[0]
        self.samples: list[float] = []
        self.host_ms = 0.0
        self.estimate_ms = 0.0
        self.problem: dict | None = None


def last_level_cache() -> int:
    """Bytes of the host's last cache level."""
    sizes = []
    for place in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = place.read_text().strip()
        sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]] if text[-1] in "KM" else int(text))
    return max(sizes, default=32 << 20)


def input_sets(problem: Problem) -> list:
    """On the host: zero-mean input sets, enough of them that one round through them exceeds twice the last cache level
    (at most 8 sets: a host's last level may be shared by a hundred cores). On CUDA the clock flushes, one is enough."""
    first = problem.dataset("normal", 0)
    if problem.device.type == "cuda":
        return [first]
    size = max(1, sum(g.nbytes for g in first.inputs))
    count = min(8, max(1, -(-2 * min(last_level_cache(), 128 << 20) // size)), max(1, (1 << 30) // size))
    return [first] + [_copy_of(problem, first) for _ in range(count - 1)]


def _copy_of(problem: Problem, data: Dataset) -> Dataset:
    """The same numbers at another place in memory, without references: only set 0 is checked."""
    inputs = [Guarded(v["shape"], v["strides"], dtype_of(v), problem.device) for v in problem.inputs]
    for copy, given in zip(inputs, data.inputs, strict=True):
        copy.flat.copy_(given.flat)
    return Dataset(data.kind, data.seed, inputs)


def measure(
    problem: Problem, runners: list, milliseconds: float, floor_ms: float, seed: int = 0, load: bool = False
) -> list[dict]:
    """Times all runners round-robin, about `milliseconds` of running time each. One random round of each is checked like
    a verification: poisoned outputs before, errors and guard bands after. `load`: on CUDA those that passed are timed
    back to back as well (`sustained_ms`)."""
    cuda = problem.device.type == "cuda"
    clock = CudaClock(problem.device) if cuda else HostClock()
    sets, outputs = input_sets(problem), problem.new_outputs()
    subjects = []
    for runner in runners:
        subject = Subject(runner, sets, outputs)
        subject.estimate_ms, subject.host_ms = clock.warm(subject.calls[0])
        subjects.append(subject)
    rounds = {id(s): _rounds(s, milliseconds) for s in subjects}
    chance = random.Random(seed)
    checked = {id(s): chance.randrange(rounds[id(s)]) for s in subjects}
    for turn in range(max(rounds.values(), default=0)):
        for subject in subjects:
            if turn >= rounds[id(subject)] or subject.problem:
                continue
            check = turn == checked[id(subject)]
            which = 0 if check else turn % len(sets)
            if check:
                for g in outputs:
                    g.poison()
            _sample(problem, clock, subject, which, sets[which], outputs if check else None)
    rows = [_row(subject, floor_ms if cuda else 0.0) for subject in subjects]
    if load and cuda:
        near = contenders(rows)
        for i, ms in zip(near, under_load(clock, [subjects[i] for i in near]), strict=False):
            rows[i]["sustained_ms"] = ms
    return rows


def contenders(rows: list[dict]) -> list[int]:
    """Which rows of `measure` may still become the fastest under load."""
    least = min((row["ms"] for row in rows if row["ok"]), default=0.0)
    return [i for i, row in enumerate(rows) if row["ok"] and row["ms"] <= HOPELESS * least]


def _rounds(subject: Subject, milliseconds: float) -> int:
    return int(min(MAX_ROUNDS, max(MIN_ROUNDS, milliseconds / max(subject.estimate_ms, 1e-3))))


def _sample(problem: Problem, clock, subject: Subject, which: int, data, outputs: list[Guarded] | None) -> None:
    call = subject.calls[which]
    kept: list = []

    def keeping() -> None:
        kept.append(call())

    subject.samples.append(clock.sample(keeping, subject.host_ms))
    if outputs is None:
        return
    breach = check_memory(problem, data, outputs) if kept[0] is None else check_form(problem, kept[0])
    if not breach:
        tensors = [g.tensor for g in outputs] if kept[0] is None else kept[0]
        breach = compare(problem, data, tensors)[1]
    if breach:
        subject.problem = {**breach, "reason": "in a timed run: " + breach["reason"]}
        problem.forget()


def _row(subject: Subject, floor_ms: float) -> dict:
    ms, ci95 = median_ci95(subject.samples)
    row = {
        "ms": ms,
        "ci95": ci95,
        "samples": len(subject.samples),
        "host_ms": subject.host_ms,
        "ok": True,
        "reason": "",
        "kind": "",
    }
    if subject.problem:
        return row | {"ok": False, **subject.problem}
    if ms < floor_ms * FLOOR_SLACK:
        return row | {
            "ok": False,
            "kind": "below_floor",
            "reason": f"{ms:.4g} ms is less than the machine's least, {floor_ms:.4g} ms: the work is not done",
        }
    return row
