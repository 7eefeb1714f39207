"""Recurrent layers are traced by shape, as one node, as long as their steps are many."""

from __future__ import annotations

import copy
import threading
import time

import pytest
import torch
from tessera.common.recurrent import recurrent_shapes
from tessera.tracing import held as holding
from torch import nn


class Last(nn.Module):
    """A recurrent layer with all that it returns, and something behind it."""

    def __init__(self, layer: nn.Module, width: int):
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 3)

    def forward(self, x):
        y, state = self.layer(x)
        states = state if isinstance(state, tuple) else (state,)
        return self.out(y), *states


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_shapes_and_strides_are_torchs(kind, batch_first, bidirectional):
    torch.manual_seed(0)
    layer = kind(5, 4, num_layers=2, batch_first=batch_first, bidirectional=bidirectional)
    module, x = Last(layer, 8 if bidirectional else 4).eval(), torch.randn(7, 6, 5)
    held = holding.hold(module, (x,), {})
    found = {v["name"]: v for v in held.graph["values"]}
    node = next(n for n in held.graph["nodes"] if n["op"].startswith(f"aten.{kind.__name__.lower()}"))
    with torch.no_grad():
        y, state = layer(x)
    real = [y, *(state if isinstance(state, tuple) else (state,))]
    for name, t in zip(node["outputs"], real, strict=True):
        assert (found[name]["shape"], found[name]["strides"]) == (list(t.shape), list(t.stride())), name
    # What is traced afterwards, or run, is torch's own again.
    with torch.no_grad():
        assert torch.equal(copy.deepcopy(module)(x)[0], module(x)[0])


def test_threads_that_trace_leave_torchs_rules_behind():
    """Two at once: the second to begin would take the first one's rules for torch's, and put them back for good."""
    op = torch.ops.aten.gru.input
    own, begun, inside, over = dict(op.py_kernels), threading.Event(), threading.Event(), threading.Event()

    def first():
        with recurrent_shapes():
            begun.set()
            inside.wait(0.5)  # the second one waits until this is over
        over.set()

    def second():
        begun.wait()
        with recurrent_shapes():
            inside.set()
            over.wait()

    threads = [threading.Thread(target=f) for f in (first, second)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert dict(op.py_kernels) == own


def test_a_projected_state_has_its_own_width():
    layer = nn.LSTM(5, 4, proj_size=3)
    held = holding.hold(Last(layer, 3).eval(), (torch.randn(7, 6, 5),), {})
    shapes = [v["shape"] for v in held.graph["values"]]
    assert [7, 6, 3] in shapes and [1, 6, 4] in shapes, shapes


def test_many_steps_take_no_longer():
    """Step by step this takes half a minute."""
    module, x = Last(nn.GRU(8, 8, num_layers=6, bidirectional=True), 16).eval(), torch.randn(512, 2, 8)
    begin = time.monotonic()
    held = holding.hold(module, (x,), {})
    assert time.monotonic() - begin < 10 and any("gru" in n["op"] for n in held.graph["nodes"])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_inductor_takes_what_stands_around_it(kind):
    """Step by step it compiles for many minutes."""
    torch.manual_seed(0)
    module, x = Last(kind(8, 8, num_layers=6, batch_first=True), 8).eval(), torch.randn(2, 512, 8)
    held = holding.hold(module, (x,), {})
    steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
    plan = {"schema": "tessera.plan/1", "graph": held.graph, "steps": steps, "leftover": []}
    begin = time.monotonic()
    with torch.no_grad():
        found, wanted = held.compose(plan, "inductor")(x), module(x)
    assert time.monotonic() - begin < 60
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)
