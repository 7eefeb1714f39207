"""The benchmark's own clock, under a time that the test sets."""

import places  # noqa: F401  isort: skip
import pytest
from clock import LEAST_ROUNDS, MOST_ROUNDS, MOST_TURNS, TURNS, Clock, figure


class Machine:
    """A device whose calls take what they say: `host` ms until they are enqueued, `device` ms until they are done."""

    def __init__(self):
        self.now, self.done, self.calls = 0.0, 0.0, []

    def sync(self):
        self.now = max(self.now, self.done)

    def way(self, name, device, host=0.01):
        def call(*inputs):
            self.calls.append((name, inputs))
            self.now += host / 1e3
            self.done = max(self.done, self.now) + device / 1e3

        return call


@pytest.fixture
def machine():
    return Machine()


def clock_of(machine):
    return Clock(machine.sync, lambda: machine.now)


SETS = [(1,), (2,), (3,)]


def test_a_slower_way_gives_the_right_ratio(machine):
    clock = clock_of(machine)
    ways = {"ours": machine.way("ours", 1.0), "peer": machine.way("peer", 1.5)}
    estimates = {name: clock.warm(way, SETS) for name, way in ways.items()}
    for found in (clock.synchronized(ways, SETS, estimates, 1.0), clock.back_to_back(ways, SETS, estimates)):
        assert found["peer"].ms / found["ours"].ms == pytest.approx(1.5, rel=0.01)


def test_host_time_counts_in_a_call_by_itself_and_hides_back_to_back(machine):
    clock = clock_of(machine)
    ways = {"ours": machine.way("ours", 1.0, host=0.5)}
    estimates = {"ours": clock.warm(ways["ours"], SETS)}
    assert clock.synchronized(ways, SETS, estimates, 1.0)["ours"].ms == pytest.approx(1.5)
    assert clock.back_to_back(ways, SETS, estimates)["ours"].ms == pytest.approx(1.0, rel=0.02)
    # What the host is too slow for is no faster back to back.
    ways = {"ours": machine.way("ours", 0.1, host=0.5)}
    assert clock.back_to_back(ways, SETS, {"ours": 0.6})["ours"].ms == pytest.approx(0.5, rel=0.01)


def test_ways_take_turns_on_rotating_sets(machine):
    clock = clock_of(machine)
    ways = {name: machine.way(name, 1.0) for name in "abc"}
    prepared = []
    clock.synchronized(ways, SETS, dict.fromkeys(ways, 1.0), 1e-6, prepared.append)
    leads, timed = machine.calls[::2], machine.calls[1::2]
    rounds = [timed[i : i + 3] for i in range(0, len(timed), 3)]
    assert len(rounds) == LEAST_ROUNDS
    assert [name for name, _ in leads] == [name for name, _ in timed], "each way runs before it is timed"
    assert [inputs for _, inputs in leads[::3]][:4] == [(3,), (1,), (2,), (3,)]
    assert all({name for name, _ in r} == set("abc") and len({inputs for _, inputs in r}) == 1 for r in rounds)
    assert len({tuple(name for name, _ in r) for r in rounds}) > 2, "the order never changes"
    assert [r[0][1] for r in rounds[:4]] == [(1,), (2,), (3,), (1,)]
    assert prepared == [inputs for _, inputs in machine.calls]


def test_how_often(machine):
    clock = clock_of(machine)
    ways = {"a": machine.way("a", 0.01)}
    assert clock.synchronized(ways, SETS, {"a": 0.02}, 1e9)["a"].samples == MOST_ROUNDS
    machine.calls.clear()
    found = clock.back_to_back({"a": machine.way("a", 100.0)}, SETS, {"a": 100.0})
    assert (
        found["a"].samples == TURNS and len(machine.calls) == TURNS * 5
    )  # three that count, two in which the clock follows


def test_a_noisy_host_costs_more_turns(machine):
    """Of two ways that are near one another; one that is far behind may be as noisy as it likes."""
    clock = clock_of(machine)
    noise = iter(range(1 << 20))

    def noisy(*inputs):
        machine.now = machine.done = max(machine.now, machine.done) + (1 + 0.3 * (next(noise) // 300 % 2)) / 1e3

    def samples(ms):
        return clock.back_to_back({"a": noisy, "b": machine.way("b", ms)}, SETS, {"a": 1.0, "b": 1.0})["a"].samples

    assert samples(1.1) > TURNS and samples(1.1) <= MOST_TURNS
    assert samples(0.5) == TURNS


def test_the_interval_is_of_the_median():
    f = figure([float(i) for i in range(100)])
    assert f.ms == 49.5 and 9 <= f.ci95 <= 10.5
    assert figure([5.0] * 10 + [500.0]).ms == 5.0
    assert figure([2.0]).ci95 == 0.0


def test_the_collector_is_as_it_was(machine):
    import gc

    assert gc.isenabled()
    seen = []
    clock_of(machine).synchronized({"a": lambda x: seen.append(gc.isenabled())}, [(1,)], {"a": 1.0}, 1e-6)
    assert gc.isenabled() and not any(seen)
