"""What a plan emits for ATen nodes."""

from __future__ import annotations

import pytest
import torch
from composing import mlp_plan
from tessera.common.errors import Error
from tessera.running.plan_graph import build, dtype_of
from test_library import KV, B, D, H, L, attention, attention_that_writes, value


def written_out(outputs: list[str], layout: str | None = "contiguous_format"):
    """A graph of attention whose result is cloned behind its transposition, and its output values."""
    graph, _ = attention()
    strides = [L * H * D, D, L * D, 1]
    graph["values"] += [
        value("ot", [B, L, H, D], strides=strides),
        value("c", [B, L, H, D], strides=None if layout else strides),
    ]
    transposed = {"self": {"value": "o"}, "dim0": 1, "dim1": 2}
    cloned = {"self": {"value": "ot"}} | ({"memory_format": layout} if layout else {})
    graph["nodes"] += [
        {"name": "ot", "op": "aten.transpose.int", "outputs": ["ot"], "arguments": transposed},
        {"name": "c", "op": "aten.clone.default", "outputs": ["c"], "arguments": cloned},
    ]
    graph |= {"outputs": outputs, "inputs": ["q", "k", "v"], "mutations": []}
    return graph


def run(graph: dict, heads_last: bool, monkeypatch):
    """The emitted graph's results, attention's own result beside them."""
    from tessera.running import plan_graph

    made, stand_in = attention_that_writes(heads_last)
    real = plan_graph.overload
    monkeypatch.setattr(plan_graph, "overload", lambda op: stand_in if "attention" in op else real(op))
    built = build({"graph": graph, "steps": [], "leftover": []})
    given = {n: torch.randn(B, L, heads * D) for n, heads in (("q", H), ("k", KV), ("v", KV))}
    return built.main(*(given[n] for n in built.feeds)), made[0]


@pytest.mark.parametrize("heads_last", (True, False))
def test_a_clone_of_attention_is_no_copy_where_its_layout_fits(heads_last, monkeypatch):
    (c,), result = run(written_out(["c"]), heads_last, monkeypatch)
    torch.testing.assert_close(c, result.transpose(1, 2))
    assert c.is_contiguous()
    assert (c.data_ptr() == result.data_ptr()) == heads_last


def test_a_clone_that_keeps_its_layout_is_no_copy(monkeypatch):
    (c,), result = run(written_out(["c"], layout=None), False, monkeypatch)
    assert c.data_ptr() == result.data_ptr() and c.stride() == result.transpose(1, 2).stride()


@pytest.mark.parametrize("other", ("o", "ot"))
def test_what_the_caller_gets_besides_is_copied(other, monkeypatch):
    (c, seen), result = run(written_out(["c", other]), True, monkeypatch)
    assert seen.data_ptr() == result.data_ptr() != c.data_ptr()


def test_two_clones_for_the_caller_are_two(monkeypatch):
    graph = written_out(["c", "flat"])
    graph["values"] += [value("d", [B, L, H, D]), value("flat", [B, L, H * D])]
    graph["nodes"].append({**graph["nodes"][-1], "name": "d", "outputs": ["d"]})
    viewed = {"self": {"value": "d"}, "size": [B, L, H * D]}
    graph["nodes"].append({"name": "flat", "op": "aten.view.default", "outputs": ["flat"], "arguments": viewed})
    (c, d), _ = run(graph, True, monkeypatch)
    assert c.data_ptr() != d.data_ptr()


def test_what_a_kernel_is_spared_is_neither_made_nor_fed(library):
    """Its first input stands in the place: what a kernel does not look at has no type of its own."""
    plan = mlp_plan(library)
    assert "b1" in build(plan).feeds
    plan["steps"][3]["spared"] = [2]
    built = build(plan)
    assert "b1" not in built.feeds
    spec = built.patterns[0].operator.spec
    assert spec.inputs[2] == spec.inputs[0] != spec.inputs[1]
    (call,) = (n for n in built.main.graph.nodes if n.target is built.patterns[0].operator.op)
    assert call.args[2] is call.args[0]


@pytest.mark.parametrize("name", ["float31", "nn"])
def test_an_element_type_of_another_torch_is_named(name):
    assert dtype_of("float32") is torch.float32
    with pytest.raises(Error, match="TS0213"):
        dtype_of(name)
