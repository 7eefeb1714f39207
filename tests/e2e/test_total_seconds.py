"""`total_seconds`: all that follows the call ends in time, with what there is by then."""

from __future__ import annotations

import json
import time

import pytest
import tessera
import torch
from core import BINARY, SMALL
from core import tessera as command
from torch import nn


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TESSERA_BINARY", str(BINARY))
    monkeypatch.setenv("TESSERA_HOME", str(tmp_path / "home"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)

    def forward(self, x):
        return torch.softmax(self.linear(x), -1)


class Long(nn.Module):
    """Traced for minutes: a loop of many ops."""

    def forward(self, x):
        for _ in range(60000):
            x = x * 1.0001 + 0.5
        return x


class InParts(nn.Module):
    def forward(self, x):
        return x * 2 if float(x.sum()) > 0 else x - 1


def test_a_module_that_is_traced_for_too_long_runs_as_it_is():
    module, x = Long(), torch.randn(8)
    begin = time.monotonic()
    fast = tessera.optimize(module, (x,), total_seconds=6.0, progress=False)
    assert time.monotonic() - begin < 55  # tracing alone is given up after 60 without
    status = fast.status()
    assert status["runner"] == "eager" and "given up after" in status["reason"]
    with torch.no_grad():
        assert torch.equal(fast(x), module(x))


@pytest.mark.parametrize("module", [Block(), InParts()])
def test_what_there_is_in_time_is_right(module):
    module, x = module.eval(), torch.randn(64, 32)
    begin = time.monotonic()
    fast = tessera.optimize(module, (x,), total_seconds=20.0, progress=False)
    assert time.monotonic() - begin < 50  # of a busy machine
    with torch.no_grad():
        torch.testing.assert_close(fast(x), module(x))
    assert fast.status()["calls"] == 1


def test_the_command_ends_in_time(tmp_path):
    (tmp_path / "small.py").write_text(SMALL)
    begin = time.monotonic()
    done = command(tmp_path, "optimize", tmp_path / "small.py", "--total-seconds", 25, "-o", tmp_path / "out")
    assert time.monotonic() - begin < 60  # of a busy machine
    found = json.loads(done.stdout)
    if done.returncode != 0:
        assert "the time was over" in found["message"] or "given up after" in found["message"], found
    else:
        assert (tmp_path / "out" / "composed.py").exists() and found["report"]["verification"]["ok"]
