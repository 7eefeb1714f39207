"""Who gives up what, and when, where the seconds of a call are limited (`total_seconds`)."""

from __future__ import annotations

import math
import time

import pytest
import torch
from tessera.common.errors import Error, fail
from tessera.judging.compile_time import Compile
from tessera.judging.settling import Settler
from tessera.tracer_process import Tracer
from tessera.tracing.bounded import TRACE_SECONDS, Total
from tessera.tracing.held import hold
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1)


def test_the_parts_of_a_total():
    now = time.monotonic()
    none = Total(now, 0.0)
    assert none.left() == math.inf and none.for_tracing() == TRACE_SECONDS and none.left_as_option() == {}
    some = Total(now - 4, 20.0)
    assert 15 < some.left() <= 16 and 5 < some.for_tracing() <= 6
    assert 14 < some.left_as_option()["total_seconds"] <= 15.5
    over = Total(now - 30, 20.0)
    assert over.left() < 0 < over.for_tracing() < 0.1 and over.left_as_option() == {"total_seconds": 1.0}
    up = fail("TS0460", "tune.time_is_up", "over")
    assert some.is_up(up) and not none.is_up(up) and not some.is_up(fail("TS0202", "graph.untraceable", "it"))


def test_a_request_is_given_up_after_its_limit(monkeypatch):
    tracer = Tracer(hold(Block().eval(), (torch.randn(4, 32),), {}))
    monkeypatch.setattr(tracer, "measure_module", lambda params: time.sleep(60) or {})
    begin = time.monotonic()
    with pytest.raises(Error) as e:
        tracer.handlers["measure_module"]({"limit": 0.2})
    assert e.value.diagnostic["code"] == "TS0460" and "measure_module" in e.value.diagnostic["message"]
    assert time.monotonic() - begin < 20
    assert "ways" in tracer.handlers["prepare_torch"]({"runners": ["eager"], "limit": 600.0})


def test_inductor_is_given_up_and_eager_stays():
    held = hold(Block().eval(), (torch.randn(4, 32),), {})
    eager = held.torch_runner
    held.torch_runner = lambda name: time.sleep(60) if name == "inductor" else eager(name)
    settler = Settler(held)
    settler.compile(["eager", "inductor"], Compile(seconds=0.3, ends=True))
    rows = {r["runner"]: r for r in settler.prepare(["eager", "inductor"], Compile(seconds=0.3, ends=True))}
    assert "given up after 0 s" in rows["inductor"]["reason"] and rows["inductor"]["no_time"]
    assert rows["eager"]["reason"] == "" and rows["eager"]["call_ms"] > 0


def test_what_was_given_up_has_taken_all_the_seconds():
    budget = Compile(seconds=0.2, ends=True)
    assert budget.refuses() == "" and "given up" in budget.run(lambda: time.sleep(60))
    budget.took(0.0)
    assert budget.refuses() != ""
    assert Compile(seconds=60.0, ends=True).run(lambda: None) == ""
