"""The suite of attention: its cases mean what they say, its peers compute the same, its rows are whole."""

import math
from argparse import Namespace

import places  # noqa: F401  isort: skip
import pytest
import torch
from cases import attention as cases
from standins import Composed
from suites import attention as suite

SMALL = [
    cases.Case(2, 4, 2, 24, 16),
    cases.Case(1, 4, 4, 24, 16, causal=True),
    cases.Case(1, 4, 2, 24, 16, window=5),
    cases.Case(2, 4, 2, 24, 16, causal=True, softcap=3.0),
    cases.Case(1, 4, 1, 24, 16, window=7, softcap=3.0),
]


def by_definition(case, q, k, v):
    group = case.heads // case.kv_heads
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(case.dim)
    if case.softcap:
        scores = case.softcap * (scores / case.softcap).tanh()
    i, j = torch.arange(case.length)[:, None], torch.arange(case.length)
    hidden = (j > i) if case.causal or case.window else torch.zeros(case.length, case.length, dtype=torch.bool)
    if case.window:
        hidden = hidden | (j <= i - case.window)
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ v


@pytest.mark.parametrize("case", SMALL, ids=lambda c: c.name)
def test_modules_and_flex_attention_compute_the_case(case):
    module, draw = cases.make(case, "cpu", torch.float32)
    inputs = draw()
    right = by_definition(case, *inputs)
    assert torch.allclose(module(*inputs), right, atol=1e-5)
    assert torch.allclose(cases.flex(case, "cpu", compiled=False)(*inputs), right, atol=1e-5)


def test_the_list_is_that_of_the_goals():
    plain = [c for c in cases.CASES.values() if c.plain]
    assert len(plain) == 31 and len(cases.CASES) == 36
    assert all(set(suite.peers_of(c)) == {"cudnn", "flash"} for c in plain)
    assert {c.dim for c in plain} == {64, 96, 128, 256} and all(c.batch * c.length == 16384 for c in plain)


def test_rows_have_a_time_or_a_reason_for_every_peer(monkeypatch):
    import tessera

    case = cases.Case(1, 2, 2, 8, 16, window=3)
    monkeypatch.setattr(tessera, "optimize", lambda module, inputs, **_: Sdpa(module))
    monkeypatch.setattr(suite, "peer", lambda name, case, device: cases.Attention(case) if name == "cudnn" else 1 / 0)
    options = Namespace(no_resizes=True, effort="", leftover="", jobs=0, seconds=0.0)
    cudnn, flex = suite.measure_case(case, "fp32", options, "cpu")
    assert cudnn["peer_ms"] > 0 and cudnn["ms"] > 0 and cudnn["mode"] == "back_to_back"
    assert cudnn["ratio"] is None and "slower" in cudnn["why"] and cudnn["impl"] == "none"
    assert flex["peer_ms"] is None and "ZeroDivisionError" in flex["absent"]


class Sdpa(Composed):
    def forward(self, *inputs):
        return self.inner(*inputs)


def test_the_summary_takes_plain_cases_and_flex():
    rows = [
        {"case": "8x16x2048x96", "peer": "cudnn", "ratio": 1.2},
        {"case": "4x16x4096x128", "peer": "cudnn", "ratio": 0.9},
        {"case": "1x32/8x8192x128-window4096", "peer": "cudnn", "ratio": 6.0},
        {"case": "1x32/8x8192x128-window4096", "peer": "flex", "ratio": 1.9},
        {"case": "8x16x2048x96", "peer": "flash", "ratio": None},
    ]
    cudnn, flex = suite.summary(rows)
    assert "2 cases" in cudnn and "1.039x" in cudnn and "least 0.900x" in cudnn
    assert "1 cases" in flex and "1.900x" in flex
