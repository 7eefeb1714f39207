"""Library calls as nodes of the composed graph: views without as_strided, attention as the one op that it comes down to."""

from __future__ import annotations

import random

import pytest
import torch
from composing import t as ref
from composing import value
from tessera.running import leftover
from tessera.running.library_steps import Views, attention, dense_order
from tessera.running.plan_graph import build
from torch import fx


def run(emit, *tensors):
    """What the nodes give that `emit` makes behind one placeholder; None where it makes none."""
    graph = fx.Graph()
    made = emit(Views(graph), graph.placeholder("x"))
    if made is None:
        return None
    graph.output(made)
    return fx.GraphModule({}, graph)(*tensors)


def lying(shape, order):
    """A tensor without gaps whose dims lie in memory in this order, and its value."""
    x = torch.randn([shape[d] for d in order]).permute([order.index(d) for d in range(len(order))])
    return x, value("x", list(x.shape), strides=list(x.stride()))


WINDOWS = [  # of a value's shape: a view's shape, strides, offset
    ([4, 6, 16], [4, 2, 6, 8], [96, 8, 16, 1], 0),  # heads before lengths
    ([4, 6, 16], [4, 2, 6, 4], [96, 4, 16, 1], 8),  # the values of merged projections
    ([4, 6, 16], [24, 16], [16, 1], 0),
    ([24, 16], [4, 6, 16], [96, 16, 1], 0),
    ([16], [1, 24, 16], [0, 0, 1], 0),  # a bias, read in every row
    ([4, 1, 1, 6], [4, 3, 5, 6], [6, 0, 0, 1], 0),  # a mask
    ([6, 16], [16, 6], [1, 16], 0),
    ([6, 16], [3], [32], 5),  # a column
    ([6, 16], [], [], 37),
]


@pytest.mark.parametrize("base, shape, strides, offset", WINDOWS)
def test_views_are_those_of_as_strided(base, shape, strides, offset):
    x, v = torch.randn(base), value("x", base)
    found = run(lambda views, x: views.of(x, v, shape, strides, offset), x)
    assert found is not None
    expected = x.as_strided(shape, strides, offset)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert found.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_a_value_may_lie_in_any_order_but_not_in_pieces():
    x, v = lying([2, 4, 6, 8], [0, 2, 1, 3])
    found = run(lambda views, x: views.of(x, v, [12, 32], [32, 1], 0), x)
    torch.testing.assert_close(found, x.as_strided([12, 32], [32, 1]), rtol=0, atol=0)
    gap = value("x", [4, 6], strides=[8, 1])
    assert dense_order(gap) is None and run(lambda views, x: views.of(x, gap, [4, 6], [8, 1], 0)) is None
    overlapping = value("x", [16])
    assert run(lambda views, x: views.of(x, overlapping, [4, 8], [2, 1], 0)) is None


@pytest.mark.parametrize("copied", [False, True])
def test_results_have_the_layout_of_the_value(copied):
    random.seed(3)
    for _ in range(20):
        shape, order = [2, 3, 4, 5], random.sample(range(4), 4)
        x, v = lying(shape, order)
        flat = value("y", [6, 20])
        view = {"shape": shape, "strides": list(x.stride())}
        given = x.contiguous() if copied else x  # an op that lays its result otherwise

        def onto(value, view=view, given=given):
            return run(lambda views, node: views.onto(node, view, value, copied=copied), given)

        there = onto(v)
        assert there.stride() == x.stride() and torch.equal(there, x)
        rows = onto(flat)
        assert torch.equal(rows, x.as_strided([6, 20], [20, 1]))
    part = {"shape": [2, 3], "strides": [3, 1]}
    assert run(lambda views, x: views.onto(x, part, value("y", [2, 4]))) is None


@pytest.mark.parametrize("masked", [False, True])
def test_attention_comes_down_to_one_op(masked):
    q, k, v = (torch.randn(2, 4, 8, 16) for _ in range(3))
    mask = torch.randn(2, 1, 8, 8) if masked else None
    attend = attention("flash", {"scale": 0.3, "is_causal": False, "enable_gqa": False})
    result, direct = attend.concrete(q, k, v, mask)
    assert torch.equal(result, attend(q, k, v, mask))
    if direct is not None or not masked:
        other = [torch.randn_like(x) for x in (q, k, v)]
        mask = None if mask is None else torch.randn_like(mask)
        assert torch.equal(direct(*other, mask), attend(*other, mask))


def merged_attention() -> dict:
    """Queries, keys and values side by side in one projection, as a library's attention reads them: at offsets."""
    heads = {"shape": [2, 4, 6, 8], "strides": [576, 8, 96, 1]}
    body = {
        **{name: {**heads, "tensor": 0, "offset": 32 * i} for i, name in enumerate("qkv")},
        "output": {"tensor": 1, "shape": [2, 4, 6, 8], "strides": [192, 8, 32, 1], "offset": 0},
        **{"scale": 0.35, "causal": False, "mask": None, "heads": 4, "kv_heads": 4},
    }
    nodes = [
        {
            "name": "w",
            "op": "aten.mul.Tensor",
            "arguments": {"self": ref("x"), "other": {"float": "2.0"}},
            "outputs": ["w"],
        },
    ]
    step = {
        "kind": "call",
        "pattern": {"id": "p0", "rule": "attention", "nodes": [], "body": body},
        "candidate": {"call": {"function": "sdpa", "arguments": {"backend": "default"}}, "kind": "library"},
        "inputs": ["w"],
        "outputs": [{"value": "y", **value("y", [2, 6, 32])}],
    }
    graph = {
        "device": "cpu",
        "inputs": ["x"],
        "outputs": ["y"],
        "values": [value("x", [2, 6, 96], "user_input"), value("w", [2, 6, 96]), value("y", [2, 6, 32])],
        "nodes": nodes,
    }
    return {"graph": graph, "steps": [step]}


@pytest.mark.parametrize("runner", ["eager", "inductor"])
def test_attention_reads_merged_projections_at_their_offsets(runner):
    x = torch.randn(2, 6, 96)
    main = build(merged_attention()).main
    assert not any("library_call" in str(n.target) for n in main.graph.nodes)
    q, k, v = ((2 * x)[..., 32 * i : 32 * i + 32].view(2, 6, 4, 8).transpose(1, 2) for i in range(3))
    right = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.35).transpose(1, 2).reshape(2, 6, 32)
    with torch.no_grad():
        (found,) = leftover.make(runner, main)(x)
    torch.testing.assert_close(found, right)
