"""What can be said of the clocks without a GPU."""

from types import SimpleNamespace

from tessera import timing


class Recorded:
    """A clock under which a subject takes what it says, a little more on each turn."""

    def __init__(self):
        self.order = []

    def sustained(self, call, estimate_ms):
        self.order.append(call())
        return call() + 0.01 * len(self.order)


def subject(ms, host_ms=0.0):
    return SimpleNamespace(call=lambda: ms, estimate_ms=ms, host_ms=host_ms)


def test_under_load_takes_turns_both_ways():
    clock = Recorded()
    a, b, c = timing.under_load(clock, [subject(1.0), subject(2.0), subject(3.0)])
    assert 1.0 < a < b - 0.5 < c - 1.0
    assert clock.order[:6] == [3.0, 2.0, 1.0, 1.0, 2.0, 3.0]
    assert len(clock.order) == 3 * timing.TURNS


def test_under_load_refuses_what_the_host_would_slow():
    assert timing.under_load(Recorded(), [subject(1.0), subject(0.01, host_ms=0.02)]) == []
    assert timing.under_load(Recorded(), []) == []
