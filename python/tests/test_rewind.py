"""What a module counts on from call to call is as the first call found it, however often it is called."""

import pytest
import torch
from tessera.judging import settling, timing
from tessera.judging.module_times import compare_plans, measure_module
from tessera.judging.rewind import Rewind
from tessera.judging.settling import Settler
from tessera.tracing import held as holding
from torch import nn

ROOM, ROWS = 24, 8


class Cache(nn.Module):
    """Appends rows to a cache with room for three calls, as a language model's static cache does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(ROOM, 4))
        self.register_buffer("length", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.rows.index_copy_(0, self.length + torch.arange(ROWS), x)
        self.length.add_(ROWS)
        return self.rows * 2


class Given(nn.Module):
    """The same with the cache among the inputs."""

    def forward(self, x, rows, length):
        rows.index_copy_(0, length + torch.arange(ROWS), x)
        length.add_(ROWS)
        return rows * 2


def caches():
    x, length = torch.randn(ROWS, 4), torch.full((), ROWS, dtype=torch.int64)
    within = Cache().eval()
    within.length.copy_(length)
    return [(within, (x,)), (Given().eval(), (x, torch.zeros(ROOM, 4), length))]


@pytest.fixture(params=[0, 1], ids=["buffers", "inputs"])
def held(request):
    torch.manual_seed(0)
    module, args = caches()[request.param]
    return holding.hold(module, args, {})


def plan_of(held) -> dict:
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    return {"graph": held.graph, "steps": steps, "leftover": []}


def length_of(held) -> torch.Tensor:
    return held.args[2] if len(held.args) == 3 else held.module.length


def test_calls_without_it_run_out_of_the_cache(held):
    args, _ = holding.copies(held.args, held.kwargs)
    held.module(*args)
    held.module(*args)
    with pytest.raises(IndexError):
        held.module(*args)


def test_every_call_finds_what_the_first_one_found(held):
    args, kwargs = holding.copies(held.args, held.kwargs)
    rewind, results = Rewind(held, args, kwargs), []
    for _ in range(5):
        rewind()
        results.append(held.module(*args))
    assert all(torch.equal(r, results[0]) for r in results)


def test_ways_are_settled_on_what_the_caller_has(held):
    rows = Settler(held).settle(
        [{"plan": plan_of(held), "leftovers": ["eager", "inductor"]}], ["eager", "inductor"], 0.1
    )
    assert [row["reason"] for row in rows] == [""] * 4, rows
    assert int(length_of(held)) == ROWS


def test_plans_are_compared_on_what_the_caller_has(held, monkeypatch):
    (row,) = compare_plans(held, [plan_of(held)], seconds=0.05)["times"]
    assert row["reason"] == "", row
    monkeypatch.setattr(timing, "reliable", lambda samples: False)  # so that more samples are taken
    times = measure_module(held, plan_of(held), ["eager"], seconds=0.05)["times"]
    assert set(times) == {"tessera", "eager"} and int(length_of(held)) == ROWS


def test_contents_are_left_to_drift(held):
    args, kwargs = holding.copies(held.args, held.kwargs)
    assert [t.dtype for t in Rewind(held, args, kwargs)._live] == [torch.int64]


def test_a_module_that_changes_nothing_costs_nothing(monkeypatch):
    plain = holding.hold(nn.Linear(4, 4).eval(), (torch.randn(2, 4),), {})
    monkeypatch.setattr(torch, "_foreach_copy_", None)
    Rewind(plain, plain.args, plain.kwargs)()
    assert settling.Inputs(plain.args, plain.kwargs, Rewind(plain, plain.args, {})).call(plain.module) is None
