"""What can be said of the clocks without a GPU."""

import time
from types import SimpleNamespace

import pytest
import torch
from tessera.judging import timing


class Recorded:
    """A clock under which a subject takes what it says, a little more on each turn."""

    def __init__(self):
        self.order = []

    def sustained(self, call, estimate_ms, host_ms):
        self.order.append(call())
        return None if host_ms > 100 else call() + 0.01 * len(self.order)


def subject(ms, host_ms=0.0):
    return SimpleNamespace(call=lambda: ms, estimate_ms=ms, host_ms=host_ms)


def test_the_hosts_time_is_not_that_of_recording(monkeypatch):
    """CUDA graphs of Inductor's are recorded in the second call."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    clock, calls = timing.CudaClock.__new__(timing.CudaClock), []
    clock.sample = lambda call, host_ms: call() or 1.0

    def call():
        calls.append(None)
        time.sleep(0.05 if len(calls) <= 2 else 0.0)

    ms, host_ms = clock.warm(call)
    assert ms == 1.0 and host_ms < 40


def test_under_load_takes_turns_both_ways():
    clock = Recorded()
    a, b, c = timing.under_load(clock, [subject(1.0), subject(2.0), subject(3.0)])
    assert 1.0 < a < b - 0.5 < c - 1.0
    assert clock.order[:6] == [3.0, 2.0, 1.0, 1.0, 2.0, 3.0]
    assert len(clock.order) == 3 * timing.TURNS


def test_under_load_refuses_what_the_host_would_slow():
    assert timing.under_load(Recorded(), [subject(1.0), subject(0.01, host_ms=0.02)]) == []
    assert timing.under_load(Recorded(), []) == []
    assert len(timing.under_load(Recorded(), [subject(1.0), subject(0.1, host_ms=0.2)])) == 2  # enqueued ahead


def test_under_load_drops_times_of_the_host():
    clock = Recorded()
    assert timing.under_load(clock, [subject(1.0), subject(1.0, host_ms=101.0)]) == []
    assert len(clock.order) <= 2


class Event:
    """Of a device that runs nothing before the host has enqueued all, or at once (`idle`)."""

    idle = False

    def __init__(self, enable_timing):
        pass

    def record(self):
        pass

    def query(self):
        return Event.idle

    def elapsed_time(self, end):
        return 10.0


@pytest.mark.parametrize("idle", (False, True))
@pytest.mark.parametrize(("host_ms", "spun"), ((0.01, 0), (0.2, 1)))
def test_the_host_is_ahead_of_what_is_timed(monkeypatch, idle, host_ms, spun):
    spins, calls = [], []
    monkeypatch.setattr(Event, "idle", idle)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "_sleep", spins.append)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    clock = timing.CudaClock.__new__(timing.CudaClock)
    clock._cycles_per_ms = 1000
    ms = clock.sustained(lambda: calls.append(0), 0.1, host_ms)
    turns = timing.MOST_AHEAD if spun else int(timing.TURN_MS / 0.1)
    assert ms == (None if idle else 10.0 / turns)
    assert len(calls) == turns + (timing.MOST_AHEAD // 2 if spun else int(timing.CLOCK_FOLLOWS_MS / 0.1))
    assert len(spins) == spun and all(s >= len(calls) * (host_ms - 0.1) * 1000 for s in spins)


def test_what_is_far_behind_is_not_timed_under_load():
    rows = [{"ok": True, "ms": ms} for ms in (1.0, 2.0, 1.29, 1.31)] + [{"ok": False, "ms": 0.1}]
    assert timing.contenders(rows) == [0, 2]
    assert timing.contenders([]) == []
