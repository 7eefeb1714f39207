"""Graphs that Inductor compiles to something else run op by op, by both doors."""

from __future__ import annotations

import copy
import threading

import graph_tools
import pytest
import tessera
import torch
from tessera.backend import status
from tessera.backend import tessera as backend
from tessera.common.errors import Error
from tessera.tracing.tracer import trace_module
from torch import nn


def by_a_name(p, x):
    p.unfold(1, 2, 2).mul_(2)


def by_a_part(p, x):
    p.unfold(0, 2, 2)[0].zero_()


def by_an_operator(p, x):
    windows = p.unfold(1, 2, 2)
    windows **= 2


def by_an_index(p, x):
    p.unfold(1, 2, 2)[..., 0] = x[0]


def by_a_flag(p, x):
    nn.functional.relu(p.sub_(4).unfold(1, 2, 2), inplace=True)


def by_a_list(p, x):
    torch._foreach_mul_([p.unfold(1, 2, 2)], 3.0)


def of_the_argument(p, x):
    x.unfold(0, 2, 2).mul_(5)


class Writes(nn.Module):
    def __init__(self, write):
        super().__init__()
        self.write = write
        self.register_buffer("p", torch.arange(9.0).view(3, 3))

    def forward(self, x):
        self.write(self.p, x)
        return x + self.p.sum()


@pytest.mark.parametrize(
    "write", [by_a_name, by_a_part, by_an_operator, by_an_index, by_a_flag, by_a_list, of_the_argument]
)
@torch.no_grad()
def test_writes_to_some_of_what_is_unfolded(write):
    torch._dynamo.reset()
    eager, one, other = Writes(write), Writes(write), Writes(write)
    behind = torch.compile(one, backend=backend)
    fast = tessera.optimize(other, torch.ones(3), effort="quick", seconds=2, progress=False)
    for _ in range(2):
        xs = [torch.tensor([1.0, 2.0, 3.0]) for _ in range(3)]
        wanted = eager(xs[0])
        for run, m, x in ((behind, one, xs[1]), (fast, other, xs[2])):
            torch.testing.assert_close(run(x), wanted)
            torch.testing.assert_close((m.p, x), (eager.p, xs[0]))
    assert [g["runner"] for g in status(behind)] == ["eager"] and "unfolds" in status(behind)[0]["reason"]


@torch.no_grad()
def test_writes_to_a_cache_that_is_expanded_for_reading_go_to_inductor():
    """As caches of keys and values do."""

    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(2, 8, 4))

        def forward(self, x):
            self.keys[:, 3] = x
            return self.keys[:, None].expand(2, 3, 8, 4).sum(1)

    torch._dynamo.reset()
    m = Cache()
    behind = torch.compile(m, backend=backend, options={"seconds": 2})
    torch.testing.assert_close(behind(torch.ones(4)), Cache()(torch.ones(4)))
    assert "unfolds" not in str(status(behind)[0]["reason"])


def of_a_part(x):
    x.mul_(2)
    part = x[0]
    copy = part.contiguous()
    part.add_(1)
    return copy * 1


def flattened(x):
    x.mul_(2)
    copy = x[0].flatten()
    x.add_(1)
    return copy * 1


@pytest.mark.parametrize("forward", [of_a_part, flattened])
@torch.no_grad()
def test_copies_between_writes_to_what_has_gaps(forward):
    """Inductor takes them for views: after the first write there are no gaps."""
    torch._dynamo.reset()

    def x():
        return torch.arange(24.0).view(2, 3, 4)[..., :2]

    m = graph_tools.module(lambda self, x: forward(x))
    given = [x() for _ in range(3)]
    behind = torch.compile(m, backend=backend)
    fast = tessera.optimize(m, x(), effort="quick", seconds=2, progress=False)
    results = [run(t) for run, t in zip((m, behind, fast), given, strict=True)]
    for got, t in zip(results[1:], given[1:], strict=True):
        torch.testing.assert_close((got, t), (results[0], given[0]))
    assert "copies a part" in status(behind)[0]["reason"]
    with pytest.raises(Error, match="TS0206"):
        trace_module(m, (x(),))


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.n = nn.Parameter(torch.rand(4) + 1), 0
        self.register_buffer("steps", torch.linspace(10, 0, 6))

    def forward(self, x):
        y = torch.sigmoid(x * self.w) * self.steps[self.n]
        self.n += 1
        return y


def counting() -> tuple[nn.Module, nn.Module]:
    torch._dynamo.reset()
    m = Counts()
    fast = tessera.optimize(m, torch.ones(2, 4), effort="quick", seconds=2, progress=False)
    assert fast.status()["runner"] == "parts"
    return fast, copy.deepcopy(m)


@torch.no_grad()
def test_a_parameter_of_another_type_under_a_counter():
    fast, m = counting()
    for change in (nn.Module.float, nn.Module.half, nn.Module.double, nn.Module.float):
        change(m), change(fast)
        torch.testing.assert_close(fast(torch.ones(2, 4)), m(torch.ones(2, 4)), rtol=0, atol=0)


@torch.no_grad()
def test_a_counter_that_leaves_its_tensor():
    fast, m = counting()
    for _ in range(6):
        torch.testing.assert_close(fast(torch.ones(2, 4)), m(torch.ones(2, 4)))
    for _ in range(2):
        with pytest.raises(IndexError):
            fast(torch.ones(2, 4))
    assert fast.n == 6


def test_threads_leave_dynamos_setting():
    fast, _ = counting()
    before = torch._dynamo.config.allow_unspec_int_on_nn_module

    def calls():
        with torch.no_grad():
            for _ in range(20):
                fast.n = 0
                fast(torch.ones(2, 4))

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert torch._dynamo.config.allow_unspec_int_on_nn_module is before


class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(gradient)


@torch.no_grad()
def test_what_dynamo_gets_wrong_is_eagers():
    """Dynamo drops the backward of a function under torch.func.grad."""
    torch._dynamo.reset()
    m = graph_tools.module(lambda s, x: torch.func.grad(lambda t: (NoGradient.apply(t) + t.square()).sum())(x))
    fast = tessera.optimize(m, torch.ones(3), effort="quick", seconds=2, progress=False)
    torch.testing.assert_close(fast(torch.ones(3)), m(torch.ones(3)))
