"""Ways to run a module side by side: what is timed, what fails, what the winner keeps."""

from __future__ import annotations

import time
import warnings

import pytest
import torch
from composing import Mlp, compile_kernel, plan_of_trace
from tessera import backend
from tessera.common.errors import fail
from tessera.judging import settling
from tessera.judging.settling import Settler
from tessera.tracing import held as holding
from torch import nn


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_kernel(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def held(monkeypatch):
    monkeypatch.setattr(settling, "of_compiled", lambda *_: "")  # runners of these tests compute nothing
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield holding.hold(Mlp().eval(), (torch.randn(8, 16),), {})


def sleeping(ms: float, first: float = 0.0):
    state = {"first": first}

    def run(*args, **kwargs):
        time.sleep((ms + state["first"]) * 1e-3)
        state["first"] = 0.0

    return run


def test_times_are_those_of_the_calls(held):
    held.torch_runner = {"eager": sleeping(3.0), "inductor": sleeping(1.0, first=150.0)}.__getitem__
    eager, inductor = Settler(held).prepare(["eager", "inductor"])
    for row, ms in ((eager, 3.0), (inductor, 1.0)):  # a busy host sleeps longer
        assert row["call_ms"] >= ms and row["back_ms"] >= ms and row["reason"] == "" and row["plan"] is None, row
    assert inductor["call_ms"] < eager["call_ms"] and inductor["back_ms"] < eager["back_ms"]
    assert inductor["seconds"] > 0.15 > inductor["call_ms"] * 1e-3  # what compiling takes is told apart


def test_inputs_rotate_and_all_ways_see_the_same(held):
    """A module that is fast for the tensors of the last call only is not fast."""
    seen: dict[str, list[int]] = {"eager": [], "inductor": []}

    def noting(name):
        return lambda x: (seen[name].append(x.data_ptr()), time.sleep(6e-3))

    held.torch_runner = {"eager": noting("eager"), "inductor": noting("inductor")}.__getitem__
    Settler(held).prepare(["eager", "inductor"])
    sets = set(seen["eager"])
    assert 2 <= len(sets) <= settling.MOST_SETS and sets == set(seen["inductor"])
    assert held.args[0].data_ptr() not in sets
    shares = [seen["eager"].count(place) / len(seen["eager"]) for place in sets]
    assert min(shares) >= 0.5 / len(sets), shares  # whatever a turn has of calls


def test_calls_back_to_back_take_longer_turns_where_the_clock_follows_the_load(held, monkeypatch):
    monkeypatch.setattr(settling, "BACK", {"cpu": settling.BackToBack(40.0, 20.0, 3)})
    held.torch_runner = {"eager": sleeping(1.0), "inductor": sleeping(1.0)}.__getitem__
    settler, turns, timed = Settler(held), [], settling._back_to_back

    def noting(way, device, sets):
        begin = time.perf_counter()
        turns.append(timed(way, device, sets))
        assert time.perf_counter() - begin > 0.05
        return turns[-1]

    monkeypatch.setattr(settling, "_back_to_back", noting)
    rows = settler.prepare(["eager", "inductor"])
    synchronized = len(settler.ways["eager"].synchronized)
    assert len(turns) == 2 * -(-synchronized // 3) and all(row["back_ms"] >= 1.0 for row in rows)


def test_what_slows_the_host_down_decides_nothing():
    """One of two ways is 2 % faster; in half of the turns the host is at half its speed."""
    slow = [1.0, 2.0] * 10
    ways = [[[ms * level * (1 + 0.001 * k) for k in range(3)] for level in slow] for ms in (1.0, 1.02)]
    (first, ci), (second, _) = map(settling.median_ci95, settling.steadied(ways))
    assert abs(second / first - 1.02) < 1e-6 and ci < 0.01 * first
    raw, ci = settling.median_ci95([x for turn in ways[0] for x in turn])
    assert ci > 0.2 * raw


@pytest.mark.parametrize(
    "spread, behind, undecided", [(0.0, 1.0, False), (0.2, 1.0, True), (0.2, 1.5, False), (0.2, 0.5, False)]
)
def test_turns_go_on_while_a_way_that_may_win_is_known_badly(spread, behind, undecided):
    def way(ms, spread):
        turns = [[ms * (1 + spread * (7 * k % 10) / 10)] for k in range(20)]
        return settling.Way("eager", None, "", lambda: None, synchronized=turns, back_to_back=turns)

    # A third one holds what all of them have in common.
    ways = [way(1.0, 0.0), way(1.0, 0.0), way(behind, spread)]
    assert settling._undecided(ways) == undecided


def test_plans_beside_pytorch(held, library):
    plan = plan_of_trace(held.traced, library)
    before = {k: t.clone() for k, t in held.module.state_dict().items()}
    settler = Settler(held)
    rows = settler.settle([{"plan": plan, "leftovers": ["eager", "inductor"]}], ["eager"], 0.2)
    assert [(r["runner"], r["plan"], r["leftover"]) for r in rows] == [
        ("eager", None, ""),
        ("kernels", 0, "eager"),
        ("kernels", 0, "inductor"),
    ]
    assert all(r["reason"] == "" and r["call_ms"] > 0 and r["back_ms"] > 0 for r in rows), rows
    assert all(torch.equal(t, before[k]) for k, t in held.module.state_dict().items()), "the counter is put back"
    composed = settler.composed({**plan, "runner": "kernels"}, "inductor")
    assert composed._leftover == "inductor" and settler.composed({**plan, "steps": []}, "inductor") is None
    done = composed.handed_over({**plan, "kind": "mixed"}, {"name": "r"})
    s = done.status()
    assert s["calls"] == 0 and not s["fallbacks"] and done.report == {"name": "r"} and done.plan["kind"] == "mixed"


def test_what_is_prepared_once_is_not_prepared_again(held, library):
    made = []
    torch_runner = held.torch_runner
    held.torch_runner = lambda name: made.append(name) or torch_runner(name)
    settler = Settler(held)
    settler.prepare(["eager"])
    settler.settle([{"plan": plan_of_trace(held.traced, library), "leftovers": ["eager"]}], ["eager"], 0.1)
    assert made == ["eager"] and settler.torch_way("eager") is held.module


@pytest.mark.parametrize(
    "error, words",
    [
        (fail("TS0999", "test.none", "no such thing"), "no such thing"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "out of memory"),
        (RuntimeError("first line\nsecond"), "RuntimeError: first line"),
    ],
)
def test_a_way_that_fails_costs_itself_alone(held, error, words):
    def broken(*args, **kwargs):
        raise error

    held.torch_runner = {"eager": held.module, "inductor": broken}.__getitem__
    eager, inductor = Settler(held).prepare(["eager", "inductor"])
    assert words in inductor["reason"] and "call_ms" not in inductor and eager["reason"] == ""


def test_ways_are_compiled_once_and_timed_later(held, monkeypatch):
    """While they are compiled, compilers of the search run: no time may be taken."""
    made, timed = [], []

    def make(name):
        made.append(name)
        return sleeping(1.0)

    held.torch_runner = make
    take_turns = settling._take_turns
    monkeypatch.setattr(settling, "_take_turns", lambda *args: (timed.append(list(made)), take_turns(*args)))
    settler = Settler(held)
    settler.compile(["eager", "inductor"])
    assert made == ["eager", "inductor"] and not timed
    eager, inductor = settler.prepare(["eager", "inductor"])
    assert made == ["eager", "inductor"] and timed == [made]
    assert eager["call_ms"] >= 1.0 and inductor["call_ms"] >= 1.0 and inductor["seconds"] > 0


def test_memory_is_that_of_the_second_call(held, monkeypatch):
    """CUDA graphs are recorded in it; what they replay later allocates nothing."""
    calls = []
    held.torch_runner = lambda name: lambda x: calls.append(x)

    def peak_of(run, device, inputs):
        inputs.call(run)
        return len(calls)

    monkeypatch.setattr(settling, "_peak_of", peak_of)
    (way,) = Settler(held).prepare(["eager"])
    assert way["peak_bytes"] == 2


def test_a_runner_that_this_machine_lacks(held, monkeypatch):
    monkeypatch.setattr(settling.leftovers, "missing", lambda name, device: "no triton" if name == "inductor" else "")
    eager, inductor = Settler(held).prepare(["eager", "inductor"])
    assert inductor["reason"] == "no triton" and not eager["reason"]


def test_torch_runners_of_a_module(held):
    assert held.torch_runner("eager") is held.module
    x = held.args[0]
    with torch.no_grad():
        torch.testing.assert_close(held.torch_runner("inductor")(x), held.module(x))
    assert isinstance(held.module, nn.Module)


def test_rests_are_compiled_within_what_is_left_of_the_search(held, library):
    """The rest of the second plan first; the time that it took is what the other is expected to take."""
    made = []
    compose = held.compose

    def noting(plan, leftover, **options):
        made.append(leftover)
        run = compose(plan, "eager", **options)
        if leftover == "inductor":
            time.sleep(0.3)
        return run

    held.compose = noting
    plan = plan_of_trace(held.traced, library)
    fewer = {**plan, "steps": [{**step, "note": "other"} for step in plan["steps"]]}
    both = [{"plan": p, "leftovers": ["eager", "inductor"]} for p in (plan, fewer)]
    rows = Settler(held).settle(both, ["eager"], 0.1, settling.Compile(seconds=0.5, expected=0.4))
    reasons = {(r["plan"], r["leftover"]): r["reason"] for r in rows if r["runner"] == "kernels"}
    assert reasons[(1, "inductor")] == "" and "Inductor would take about" in reasons[(0, "inductor")], reasons
    assert reasons[(0, "eager")] == reasons[(1, "eager")] == ""
    assert [r["plan"] for r in rows if r.get("no_time")] == [0]
    assert made == ["eager", "eager", "inductor"]

    rows = Settler(held).settle(both, ["eager"], 0.1, settling.Compile(seconds=0.5, expected=0.6))
    assert sum(bool(r["reason"]) for r in rows) == 2
    rows = Settler(held).settle(both, ["eager"], 0.1)
    assert not any(r["reason"] for r in rows)


def test_inputs_that_cannot_be_copied_are_used_themselves(held, monkeypatch):
    def no_room(*given):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried")

    monkeypatch.setattr(type(held), "copies", no_room)
    assert settling._input_sets(held) == [(held.args, held.kwargs)]
    held.traced.graph["mutations"] = [{"target": "input:x", "value": "y"}]
    with pytest.raises(torch.OutOfMemoryError):
        settling._input_sets(held)


def test_what_is_near_by_the_hosts_clock_has_to_be_faster_on_the_device():
    def wins(eager: dict, inductor: dict) -> bool:
        ways = [{"runner": "eager", "reason": "", **eager}, {"runner": "inductor", "reason": "", **inductor}]
        return backend._eager_wins({"settled": {"ways": ways}})

    near = {"call_ms": 0.3167, "back_ms": 0.2862}, {"call_ms": 0.3318, "back_ms": 0.2995}
    assert wins(*near)
    assert not wins(near[0] | {"device_ms": 0.146}, near[1] | {"device_ms": 0.105})
    assert wins(near[0] | {"device_ms": 0.105}, near[1] | {"device_ms": 0.146})
    far = {"call_ms": 0.3, "back_ms": 0.2}, {"call_ms": 0.4, "back_ms": 0.3}
    assert wins(far[0] | {"device_ms": 0.146}, far[1] | {"device_ms": 0.105})
    assert wins(far[1], {"reason": "its results are not the module's"})
    assert not wins(far[0], {"reason": "Inductor would take about 9 s for it", "no_time": True})


class Placed(nn.Module):
    """Inductor (torch 2.11) takes the result of the batch norm for transposed, as its argument is."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Buffer(torch.randn(4))

    def forward(self, x):
        y = nn.functional.batch_norm(x, self.mean, self.mean.abs(), None, None, False)
        return y.as_strided((5, 4), (4, 1))


@pytest.mark.parametrize("counts", [False, True])
def test_inductor_must_give_what_the_module_gives(counts):
    """Also where a module is off in what it writes alone, and calls leave no trace."""

    class Writes(Placed):
        def forward(self, x):
            self.mean.copy_(super().forward(x).mean(0))
            return x * 2

    module, x = (Writes if counts else Placed)().eval(), torch.randn(4, 5).t()
    before = module.mean.clone()
    eager, inductor = Settler(holding.hold(module, (x,), {})).prepare(["eager", "inductor"])
    assert eager["reason"] == "" and f"result {int(counts)} is off by" in inductor["reason"], inductor
    assert torch.equal(module.mean, before)
