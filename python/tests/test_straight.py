"""The graph as straight-line Python: the same results as op by op, views without calls of their own, and no memory twice."""

from __future__ import annotations

import graph_tools
import pytest
import torch
from tessera.running.straight import Straight
from tessera.tracing.held import hold
from torch import fx

aten = torch.ops.aten


def traced(emit, count: int) -> fx.GraphModule:
    """A graph of what `emit` makes of so many placeholders."""
    graph = fx.Graph()
    made = emit(lambda op, *a, **k: graph.call_function(op, a, k), *[graph.placeholder(f"x{i}") for i in range(count)])
    graph.output(made if isinstance(made, tuple) else (made,))
    return fx.GraphModule({}, graph)


def check(emit, *feeds, calls: int = 3) -> str:
    """The code, after results of several calls were found to be those of the graph run op by op, and nothing that was given
    or handed out to be written to."""
    main = traced(emit, len(feeds))
    straight, before, handed = Straight(main), [t.clone() for t in feeds], []
    with torch.no_grad():
        for _ in range(calls):
            right, found = main(*feeds), straight(*feeds)
            for r, f in zip(right, found, strict=True):
                assert r.stride() == f.stride() and torch.equal(r, f)
            handed.append((found, [t.clone() for t in found]))
    assert all(map(torch.equal, feeds, before))
    assert all(torch.equal(a, b) for found, then in handed for a, b in zip(found, then, strict=True))
    return straight.code


def test_views_are_made_where_they_are_read():
    def emit(call, x, w):
        rows = call(aten.view.default, call(aten.permute.default, x, [1, 0, 2]), [12, 8])
        part = call(aten.slice.Tensor, call(aten.t.default, w), 1, 2, 6)
        y = call(aten.mm.default, rows, part)
        return call(aten.view.default, y, [3, 4, 4]), call(aten.select.int, y, 1, 2)

    x, w = torch.randn(4, 3, 8).permute(1, 0, 2).contiguous().permute(1, 0, 2), torch.randn(8, 8)
    code = check(emit, x, w)
    assert code.count(" = ") == 1 and code.count("view(") == 4, code  # one call, and what it reads and gives
    # An input may begin anywhere in its memory.
    far = torch.randn(1000)[100 : 100 + x.numel()].as_strided(x.shape, x.stride(), 100)
    straight = Straight(traced(emit, 2))
    straight(x, w)
    assert all(map(torch.equal, straight(far, w), traced(emit, 2)(far, w)))


def test_lists_of_views_are_not_made():
    def emit(call, x):
        a, b, c = (call(__import__("operator").getitem, call(aten.split.Tensor, x, 4, -1), i) for i in range(3))
        return call(aten.add.Tensor, call(aten.mul.Tensor, a, b), c)

    assert "split" not in check(emit, torch.randn(5, 12))


def test_an_elementwise_op_writes_over_what_dies_with_it():
    def emit(call, x, w, b):
        h = call(aten.linear.default, x, w, b)
        g = call(aten.gelu.default, call(aten.view.default, h, [2, 3, 8]), approximate="tanh")
        return call(aten.add.Tensor, call(aten.mul.Tensor, g, 0.5), call(aten.view.default, x, [2, 3, 8]))

    code = check(emit, torch.randn(6, 8), torch.randn(8, 8), torch.randn(8))
    assert code.count("out=") == 3, code


@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "tanh", "neg", "exp", "rsqrt", "relu"])
def test_ops_of_one_operand_need_no_memory(name):
    def emit(call, x, w):
        return call(getattr(aten, name).default, call(aten.mm.default, x, w))

    main, made = traced(emit, 2), []
    straight, x, w = Straight(main), torch.rand(6, 8), torch.rand(8, 8)
    straight(x, w)
    real = straight._run.__globals__
    product = next(key for key in real if key.startswith("mm"))
    mm = real[product]
    real[product] = lambda *a: made.append(mm(*a)) or made[-1]
    (y,) = straight(x, w)
    assert torch.equal(y, main(x, w)[0]) and y.data_ptr() == made[0].data_ptr()


@pytest.mark.parametrize("why", ["input", "read later", "read later by a view", "result", "smaller", "part", "type"])
def test_what_is_needed_otherwise_is_not_written_over(why):
    def emit(call, x, w):
        h = call(aten.mm.default, x, w)
        if why == "input":
            return call(aten.gelu.default, call(aten.view.default, x, [48]))
        if why == "read later":
            return call(aten.addmm.default, h, call(aten.gelu.default, h), w)
        if why == "read later by a view":
            v, g = call(aten.t.default, h), call(aten.gelu.default, h)
            return call(aten.mm.default, g, call(aten.slice.Tensor, v, 1, 0, 4))
        if why == "result":
            return h, call(aten.gelu.default, h)
        if why == "smaller":
            return call(aten.add.Tensor, call(aten.view.default, h, [1, 6, 8]), call(aten.view.default, x, [6, 1, 8]))
        if why == "part":
            return call(aten.gelu.default, call(aten.slice.Tensor, h, 0, 0, 3))
        return call(aten.div.Tensor, call(aten._to_copy.default, h, dtype=torch.int32), 2)

    assert "out=" not in check(emit, torch.randn(6, 8), torch.randn(8, 8))


def test_values_go_after_their_last_use():
    def emit(call, x, w):
        for _ in range(4):
            x = call(aten.mm.default, x, w)
        return x

    code = check(emit, torch.randn(4, 4), torch.randn(4, 4))
    assert code.count("del ") == 3, code


def test_state_is_written_to_when_nothing_reads_it_any_more():
    def emit(call, x, count):
        more = call(aten.add.Tensor, count, 1)
        y = call(aten.mul.Tensor, x, count)
        return y, call(aten.copy_.default, count, more)

    count, straight = torch.zeros(()), Straight(traced(emit, 2))
    for i in range(4):
        y, now = straight(torch.ones(3), count)
        assert y.tolist() == [i] * 3 and count.item() == i + 1 and now.data_ptr() == count.data_ptr()


def test_attention_that_lies_otherwise_runs_op_by_op():
    """Which kernel torch takes, and how its result lies, may change with torch's flags."""
    heads_last = True

    def attend(q):
        out = torch.empty(2, 6, 4, 8).transpose(1, 2) if heads_last else torch.empty(2, 4, 6, 8)
        return out.copy_(q)

    def emit(call, q):
        return call(aten.reshape.default, call(aten.transpose.int, call(attend, q), 1, 2), [2, 6, 32])

    q, straight = torch.randn(2, 4, 6, 8), Straight(traced(emit, 1))
    right = q.transpose(1, 2).reshape(2, 6, 32)
    for heads_last in (True, True, False, True):  # noqa: B007 - read by attend
        assert torch.equal(straight(q)[0], right)


def test_ops_that_torch_spells_otherwise_run_as_they_are():
    def emit(call, x):
        y = call(aten.sum.dim_IntList, x, [1], True, dtype=torch.float64)
        return call(aten.amax.default, call(aten._to_copy.default, y, dtype=torch.float32), [0], False)

    check(emit, torch.randn(3, 4))


def test_constants_of_any_kind():
    def emit(call, x):
        return call(aten.full_like.default, x, float("-inf"), dtype=torch.float64, device=torch.device("cpu"))

    assert "inf" not in check(emit, torch.randn(3))


def test_arguments_of_one_memory_lie_apart_in_the_next_call():
    m = graph_tools.module(lambda self, x, y: (torch.cos(y.view(-1)), y.mT * x.mT))
    memory = torch.randn(48)
    with torch.no_grad():
        held = hold(m, (memory[:24].view(4, 6), memory[24:].view(4, 6)), {})
        steps = [{"kind": "aten", "node": n["name"]} for n in held.graph["nodes"]]
        composed = held.compose({"graph": held.graph, "steps": steps}, "eager")
        for apart in (False, False, True, True):
            memory = torch.randn(48)
            x, y = memory[:24].view(4, 6), memory[24:].view(4, 6)
            x = x.clone() if apart else x
            for got, want in zip(composed(x, y), m(x, y), strict=True):
                assert torch.equal(got, want)
    assert composed.status()["served"] == 4
