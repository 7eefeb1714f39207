import functools
import os

import places  # noqa: F401  isort: skip
import beside
import clock
import pytest
from standins import Composed, Time

import doors


@pytest.fixture
def quick(monkeypatch):
    """Few rounds, and doors that compile nothing."""
    rounds = {"LEAST_ROUNDS": 5, "MOST_ROUNDS": 9, "WARM_SECONDS": 0.0}
    for name, value in (rounds | {"TURN_MS": 4.0, "BEFORE_MS": 0.0, "TURNS": 3}).items():
        monkeypatch.setattr(clock, name, value)
    monkeypatch.setattr(beside, "Clock", functools.partial(clock.Clock, now=Time.read))
    asked = {}

    def optimize(module, inputs, device, options):
        asked["optimize"] = options
        return doors.of_composed(Composed(module, 0.004), 31.5)

    def compiled(module, inputs, device, options):
        asked["compile"] = (options, os.environ.get("TESSERA_HOME"))
        of = doors.of_composed(Composed(module, 0.001, wrong=0.25), 2.0)
        whole = {"runner": "inductor", "reason": "nothing to gain", "status": None}
        return doors.Opened(of.way, of.seconds, lambda: [*of.states(), whole], of.report)

    def inductor(module, inputs, device, mode=None):
        return doors.Opened(Composed(module, 0.002), 20.0)

    monkeypatch.setattr(doors, "optimize", optimize)
    monkeypatch.setattr(doors, "compile", compiled)
    monkeypatch.setattr(doors, "inductor", inductor)
    return asked
