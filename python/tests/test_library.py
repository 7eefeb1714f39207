"""Vendor kernels as candidates, and the numeric problem behind them, on the host."""

from __future__ import annotations

import pytest
import torch
from tessera.common.errors import Error
from tessera.judging.deviation import reference_errors
from tessera.judging.problem import FULL, Problem
from tessera.judging.runners import make_runner
from tessera.judging.verify import budget, verify
from tessera.running import library

B, H, KV, L, D = 2, 4, 2, 24, 16


def value(name, shape, dtype="float32", strides=None, origin="node", **more):
    if strides is None:
        strides = [1] * len(shape)
        for i in range(len(shape) - 2, -1, -1):
            strides[i] = strides[i + 1] * shape[i + 1]
    return {"name": name, "shape": list(shape), "dtype": dtype, "strides": strides, "origin": origin, **more}


def view(tensor, shape, strides, dtype="float32", offset=0):
    return {"tensor": tensor, "dtype": dtype, "shape": shape, "strides": strides, "offset": offset}


def attention_body(dtype: str, causal: bool) -> dict:
    return {
        "batch": B,
        "heads": H,
        "kv_heads": KV,
        "q_length": L,
        "kv_length": L,
        "head_dim": D,
        "value_dim": D,
        "scale": D**-0.5,
        "causal": causal,
        "mask": None,
        "q": view(0, [B, H, L, D], [L * H * D, D, H * D, 1], dtype),
        "k": view(1, [B, KV, L, D], [L * KV * D, D, KV * D, 1], dtype),
        "v": view(2, [B, KV, L, D], [L * KV * D, D, KV * D, 1], dtype),
        "output": view(3, [B, H, L, D], [L * H * D, D, H * D, 1], dtype),
    }


def attention(dtype="float32", causal=True):
    """Projections [B, L, heads * D] seen as heads, attention, transposed back: what a decoder block has."""
    names = {"q": H, "k": KV, "v": KV}
    values, nodes = [], []
    for name, heads in names.items():
        values.append(value(name, [B, L, heads * D], dtype, origin="user_input"))
        values.append(value(f"{name}v", [B, L, heads, D], dtype))
        values.append(value(f"{name}t", [B, heads, L, D], dtype, [L * heads * D, D, heads * D, 1]))
        view_arguments = {"self": {"value": name}, "size": [B, L, heads, D]}
        nodes.append(
            {"name": f"{name}v", "op": "aten.view.default", "outputs": [f"{name}v"], "arguments": view_arguments}
        )
        nodes.append(
            {
                "name": f"{name}t",
                "op": "aten.transpose.int",
                "outputs": [f"{name}t"],
                "arguments": {"self": {"value": f"{name}v"}, "dim0": 1, "dim1": 2},
            }
        )
    strides = [L * H * D, D, H * D, 1]
    values.append(value("o", [B, H, L, D], dtype, strides))
    nodes.append(
        {
            "name": "o",
            "op": "aten.scaled_dot_product_attention.default",
            "outputs": ["o"],
            "arguments": {
                "query": {"value": "qt"},
                "key": {"value": "kt"},
                "value": {"value": "vt"},
                "attn_mask": None,
                "dropout_p": 0.0,
                "is_causal": causal,
                "scale": None,
                "enable_gqa": True,
            },
        }
    )
    values.append(value("out", [B, L, H, D], dtype))
    back = {"self": {"value": "o"}, "dim0": 1, "dim1": 2}
    nodes.append({"name": "out", "op": "aten.transpose.int", "outputs": ["out"], "arguments": back})
    graph = {
        "schema": "tessera.graph/1",
        "device": "cpu",
        "values": values,
        "nodes": nodes,
        "inputs": ["q", "k", "v"],
        "outputs": ["out"],
    }
    body = attention_body(dtype, causal)
    pattern = {
        "id": "p",
        "rule": "attention",
        "subgraph": [n["name"] for n in nodes],
        "inputs": ["q", "k", "v"],
        "outputs": ["out"],
        "body": body,
    }
    return graph, pattern | {"roles": {"non_finite": [body["q"]]}}


def linear(dtype="float32"):
    m, n, k = 20, 12, 32
    graph = {
        "values": [
            value("x", [m, k], dtype, origin="user_input"),
            value("w", [n, k], dtype, origin="parameter"),
            value("b", [n], dtype, origin="parameter"),
            value("y", [m, n], dtype),
        ],
        "nodes": [
            {
                "name": "y",
                "op": "aten.linear.default",
                "outputs": ["y"],
                "arguments": {"input": {"value": "x"}, "weight": {"value": "w"}, "bias": {"value": "b"}},
            }
        ],
        "inputs": ["x", "w", "b"],
        "outputs": ["y"],
        "device": "cpu",
    }
    body = {
        "batch": 1,
        "m": m,
        "n": n,
        "k": k,
        "a": view(0, [1, m, k], [m * k, k, 1], dtype),
        "b": view(1, [1, n, k], [n * k, k, 1], dtype),
        "epilogue": "add(%0, %1)",
        "operands": [view(2, [1, m, n], [0, 0, 1], dtype)],
        "outputs": [view(3, [1, m, n], [m * n, n, 1], dtype)],
    }
    return graph, {"id": "p", "rule": "gemm", "nodes": ["y"], "inputs": ["x", "w", "b"], "outputs": ["y"], "body": body}


def run(problem_of, call, precision="fp32", dtype="float32", **options):
    graph, pattern = problem_of(dtype, **options)
    problem = Problem(graph, pattern, "cpu", precision)
    return verify(problem, make_runner({"call": call}, problem), "full")


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("precision", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16")])
def test_attention_of_torch_passes(precision, dtype, causal):
    reply = run(attention, {"function": "sdpa", "arguments": {"backend": "default"}}, precision, dtype, causal=causal)
    assert reply["ok"], reply
    reply = run(attention, {"function": "sdpa", "arguments": {"backend": "math"}}, precision, dtype, causal=causal)
    assert reply["ok"], reply


def test_a_backend_that_cannot_says_so():
    with pytest.raises(Error) as error:
        run(attention, {"function": "sdpa", "arguments": {"backend": "cudnn"}})
    assert error.value.diagnostic["code"] == "TS0430" and "cudnn" in error.value.diagnostic["message"]


def attention_that_writes(heads_last: bool):
    """An sdpa whose results are laid out rows first or heads first, and the list of what it made."""
    sdpa = torch.ops.aten.scaled_dot_product_attention.default
    made: list[torch.Tensor] = []

    def stand_in(*args, **kwargs):
        out = sdpa(*args, **kwargs)
        rows_first = out.transpose(1, 2).contiguous()
        made.append(rows_first.transpose(1, 2) if heads_last else out.contiguous())
        return made[-1]

    stand_in._schema = sdpa._schema
    return made, stand_in


def test_wrong_mask_is_caught():
    graph, pattern = attention(causal=True)
    problem = Problem(graph, pattern, "cpu", "fp32")
    wrong = {**pattern, "body": {**pattern["body"], "causal": False}}
    problem.pattern = {**problem.pattern, "body": wrong["body"]}
    reply = verify(problem, make_runner({"call": {"function": "sdpa", "arguments": {}}}, problem), "quick")
    assert not reply["ok"] and reply["kind"] == "wrong_result"


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16")])
def test_linear_with_bias_passes(precision, dtype):
    reply = run(linear, {"function": "linear", "arguments": {"bias": 0, "activation": "none"}}, precision, dtype)
    assert reply["ok"], reply


def test_forgotten_bias_is_caught():
    reply = run(linear, {"function": "linear", "arguments": {"bias": None}})
    assert not reply["ok"] and reply["kind"] == "wrong_result"


@pytest.mark.parametrize("heads_last", (True, False))
def test_a_clone_of_attention_is_no_copy_where_its_layout_fits(heads_last, monkeypatch):
    graph, pattern = attention()
    # As a written-out attention leaves it: heads before rows, cloned behind the transposition.
    graph["values"].append(value("ot", [B, L, H, D], strides=[L * H * D, D, L * D, 1]))
    graph["values"].append(value("c", [B, L, H, D]))
    for name, op, source, more in (
        ("ot", "aten.transpose.int", "o", {"dim0": 1, "dim1": 2}),
        ("c", "aten.clone.default", "ot", {"memory_format": "contiguous_format"}),
    ):
        graph["nodes"].append(
            {"name": name, "op": op, "outputs": [name], "arguments": {"self": {"value": source}, **more}}
        )
    names = [n["name"] for n in graph["nodes"]]
    pattern = {**pattern, "nodes": names, "subgraph": names, "outputs": ["c"]}
    results, stand_in = attention_that_writes(heads_last)

    from tessera.common import reference

    real = reference.overload
    monkeypatch.setattr(reference, "overload", lambda op: stand_in if "attention" in op else real(op))
    tensors = [torch.randn(B, L, n * D) for n in (H, KV, KV)]
    (out,) = library.make("aten", pattern, {}, graph, "cpu")(tensors)
    torch.testing.assert_close(out, results[0].transpose(1, 2))
    assert out.is_contiguous()
    assert (out.data_ptr() == results[0].data_ptr()) == heads_last


def test_unknown_function_lists_what_there_is():
    graph, pattern = linear()
    with pytest.raises(Error) as error:
        library.make("nonsense", pattern, {}, graph, "cpu")
    assert error.value.diagnostic["code"] == "TS0431" and "sdpa" in error.value.diagnostic["expected"]


def test_low_precision_does_not_pass_as_fp32():
    """bf16 products in an fp32 problem: far beyond the budget of any input set."""
    graph, pattern = linear()
    problem = Problem(graph, pattern, "cpu", "fp32")
    for kind, seed in FULL[:3]:
        data = problem.dataset(kind, seed)
        x, w, b = data.tensors
        out = (x.bfloat16() @ w.bfloat16().t()).float() + b
        e = reference_errors(out, data.references[0])
        assert e["rms"] > 10 * budget("fp32", torch.float32, data.baseline[0])["rms"]


def test_tables_are_read_within_their_bounds():
    rows = 7
    graph = {
        "values": [
            value("w", [rows, 8], origin="parameter"),
            value("i", [64], "int64", origin="user_input"),
            value("e", [64, 8]),
        ],
        "nodes": [
            {
                "name": "e",
                "op": "aten.embedding.default",
                "outputs": ["e"],
                "arguments": {"weight": {"value": "w"}, "indices": {"value": "i"}},
            }
        ],
        "inputs": ["w", "i"],
        "outputs": ["e"],
        "device": "cpu",
    }
    pattern = {"rule": "gather", "nodes": ["e"], "inputs": ["w", "i"], "outputs": ["e"], "body": {}}
    problem = Problem(graph, pattern, "cpu", "fp32")
    index = problem.dataset("normal", 0).tensors[1]
    assert index.min() >= 0 and index.max() == rows - 1


def test_guarded_tensors_know_what_was_written():
    from tessera.judging.guarded import Guarded

    g = Guarded([4, 3], [8, 1], torch.float32, "cpu")
    g.poison()
    assert bool(g.unwritten().all())
    g.tensor.fill_(1.0)
    assert not g.unwritten().any() and g.stray_writes() == 0
    g.remember()
    g.tensor[0, 0] = 2.0
    assert g.changed()


def test_a_stray_write_of_what_a_stray_read_gave_shows():
    from tessera.judging.guarded import Guarded

    read, written = Guarded([4], [1], torch.float32, "cpu"), Guarded([4], [1], torch.float32, "cpu")
    written.poison()

    def beside(g):
        return torch.as_strided(g.flat, [1], [1], g.flat.storage_offset() + 4)

    beside(written).copy_(beside(read))  # NaN of ones alone
    assert beside(written).isnan().all() and written.stray_writes() > 0


def running_sum(dtype="float32"):
    """cumsum over the columns of x, which lies transposed."""
    values = [
        {"name": "x", "dtype": dtype, "shape": [6, 4], "strides": [1, 6], "origin": "user_input"},
        {"name": "y", "dtype": dtype, "shape": [6, 4], "strides": [1, 6], "origin": "node"},
    ]
    node = {
        "name": "y",
        "op": "aten.cumsum.default",
        "outputs": ["y"],
        "arguments": {"self": {"value": "x"}, "dim": 0, "dtype": None},
    }
    graph = {"schema": "tessera.graph/1", "device": "cpu", "values": values, "nodes": [node], "inputs": ["x"]}
    graph["outputs"] = ["y"]
    return graph, {"id": "p", "rule": "scan", "nodes": ["y"], "inputs": ["x"], "outputs": ["y"], "body": {}}


def test_an_op_that_a_rule_names_runs_on_views():
    call = {"op": "aten.cumsum.default", "arguments": {"self": {"view": view(0, [6, 4], [1, 6], "float32")}, "dim": 0}}
    reply = run(running_sum, {"function": "op", "arguments": call})
    assert reply["ok"], reply


def test_an_op_of_other_results_than_the_pattern_is_refused():
    graph, pattern = running_sum()
    wrong = {"op": "aten.argmax.default", "arguments": {"self": {"view": view(0, [6, 4], [1, 6], "float32")}}}
    with pytest.raises(Error) as error:
        library.make("op", pattern, wrong, graph, "cpu")([torch.ones(4, 6).t()])
    assert error.value.diagnostic["code"] == "TS0430" and "argmax" in error.value.diagnostic["message"]


def test_views_keep_the_offset_of_their_base():
    from tessera.running.library import view_of

    base = torch.arange(40.0)[4:].view(6, 6)
    view = {"tensor": 0, "shape": [2, 3], "strides": [6, 2], "offset": 7}
    assert torch.equal(view_of(view, [base]), base.as_strided((2, 3), (6, 2), base.storage_offset() + 7))
    assert torch.equal(view_of({**view, "offset": 0}, [base]), base[:2, ::2])
    torch.compile(lambda t: view_of(view, [t]) + 1, backend="aot_eager", fullgraph=True)(base)


@pytest.mark.parametrize("kind", ("normal", "non_finite"))
def test_inputs_keep_equal_halves(kind):
    graph, pattern = attention()
    next(v for v in graph["values"] if v["name"] == "k")["facts"] = {"halves_equal": True}
    q, k, _ = Problem(graph, pattern, "cpu", "fp32").dataset(kind, 0).tensors
    assert torch.equal(*(t.nan_to_num(7.0) for t in k.chunk(2, dim=-1)))
    assert not torch.equal(*(t.nan_to_num(7.0) for t in q.chunk(2, dim=-1)))


def test_the_inductor_peer_is_one_compiled_graph():
    """As a whole module is compiled: ops that Dynamo leaves to eager would be timed as Inductor's."""
    m, n = 6, 8
    node = lambda name, op, **arguments: {"name": name, "op": op, "outputs": [name], "arguments": arguments}
    given = lambda name: {"value": name}
    graph = {
        "device": "cpu",
        "values": [
            value("x", [m, n], origin="user_input"),
            value("c", [n], origin="buffer", facts={"scalar": 0.5}),
            value("s", [n], "float8_e4m3fn", origin="buffer", facts={"scalar": 2.0}),
            *(value(v, [n], "float32") for v in ("sf",)),
            *(value(v, [m, n]) for v in ("a", "b", "y")),
            value("t", [n, m], strides=[1, n]),
        ],
        "nodes": [
            node("sf", "aten._to_copy.default", self=given("s"), dtype={"dtype": "float32"}),
            node("a", "aten.mul.Tensor", self=given("x"), other=given("c")),
            node("b", "aten.cumsum.default", self=given("a"), dim=1),
            node("y", "aten.mul.Tensor", self=given("b"), other=given("sf")),
            node("t", "aten.transpose.int", self=given("y"), dim0=0, dim1=1),
        ],
        "inputs": ["x", "c", "s"],
        "outputs": ["t", "b"],
    }
    pattern = {
        "id": "p",
        "subgraph": [node["name"] for node in graph["nodes"]],
        "inputs": ["x"],
        "outputs": ["t", "b"],
        "body": {},
    }
    problem = Problem(graph, pattern, "cpu", "fp32")
    runner = make_runner({"call": {"function": "inductor"}}, problem)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    x = torch.randn(m, n)
    t, b = runner.prepare([x], [])()
    again = runner.prepare([x + 1], [])()
    counted = torch._dynamo.utils.counters
    assert counted["stats"]["unique_graphs"] == 1 and not counted["graph_break"], counted
    torch.testing.assert_close(b, (x * 0.5).cumsum(1))
    torch.testing.assert_close(t, (b * 2).T)
    torch.testing.assert_close(again[1], ((x + 1) * 0.5).cumsum(1))
    assert t.stride() == (1, n)
