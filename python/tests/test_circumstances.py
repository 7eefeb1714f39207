"""What an earlier run's times are held against."""

import json

import pytest
import torch
from composing import Mlp
from tessera.tracer_process import Tracer
from tessera.tracing.circumstances import circumstances
from tessera.tracing.held import hold


@pytest.fixture
def held():
    return hold(Mlp().eval(), (torch.randn(8, 16),), {})


def test_the_core_is_told(held):
    graph = Tracer(held).trace({})["graph"]
    assert json.loads(json.dumps(graph["meta"]["circumstances"])) == circumstances(held)


def change_flag(held, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", not torch.backends.cudnn.benchmark)


CHANGES = {
    "a flag of torch's": change_flag,
    "a variable": lambda held, patch: patch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1"),
    "the mode asked for": lambda held, patch: held.options.update(inductor={"triton.cudagraphs": True}),
    "frozen parameters": lambda held, patch: held.options.update(frozen=True),
    "training": lambda held, patch: held.module.train(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen(held, monkeypatch, what):
    before = circumstances(held)
    assert circumstances(held) == before
    CHANGES[what](held, monkeypatch)
    assert circumstances(held) != before
